// SPDX-License-Identifier: Apache-2.0
// An initializer: finite numbers for a parameter of any shape that it is for, the same for the same
// seed and stream.
#include "tenon/role/initializer.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

constexpr float kCanary = -12345.678F;
const std::vector<std::vector<int64_t>> kShapes = {{24, 16}, {16, 24}, {8, 4, 3, 3}, {32}, {1, 1}};

struct Filling : Made<tn_initializer> {
  using Made::Made;

  // The failure, or NULL with the numbers.
  tn_status* fill(const std::vector<int64_t>& shape,
                  uint64_t seed,
                  std::vector<float>& out,
                  uint64_t stream = 7) const {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    out.assign(static_cast<size_t>(n), kCanary);
    Guarded memory(out.size() * sizeof(float), sizeof(float));
    auto* numbers = static_cast<float*>(memory.data());
    std::copy(out.begin(), out.end(), numbers);
    auto fan_in = static_cast<uint64_t>(shape.size() > 1 ? n / shape[0] : 1);
    auto fan_out = static_cast<uint64_t>(shape.size() > 1 ? n / shape[1] : 1);
    tn_initial of{
        sizeof of, 0,     cxx::str("layer.weight"), shape.size(), shape.data(), fan_in, fan_out,
        seed,      stream};
    tn_status* failed = table->fill(self, &of, numbers);
    memory.require_whole("the numbers");
    if (failed) return failed;
    std::copy_n(numbers, out.size(), out.begin());
    for (size_t i = 0; i < out.size(); ++i)
      require(std::isfinite(out[i]) && out[i] != kCanary,
              cat("number ", i, ": expected a finite one, got ",
                  out[i] == kCanary ? "none" : std::to_string(out[i])));
    return nullptr;
  }
};

}  // namespace

void check_initializer(Subject& subject, Report& report) {
  report.check("fills", [&] {
    Filling one(subject);
    std::vector<float> out;
    bool fits = false;
    for (const std::vector<int64_t>& shape : kShapes) {
      tn_status* failed = one.fill(shape, 1, out);
      if (failed) must_fail(failed, cat("rank ", shape.size()));
      fits = fits || !failed;
    }
    require(fits, "expected a shape that it is for");
  });
  report.check("repeatable", [&] {
    Filling one(subject), other(subject);
    for (const std::vector<int64_t>& shape : kShapes) {
      std::vector<float> first, second, beside;
      if (tn_status* failed = one.fill(shape, 2, first)) {
        must_fail(failed, "fill");
        continue;
      }
      tn_status* again = nullptr;
      std::thread thread([&] { again = other.fill(shape, 2, second); });
      tn_status* more = one.fill(shape, 2, beside);
      thread.join();
      require(!again && !more, "it refuses what it took before");
      require(first == second && first == beside, "the same seed: expected the same numbers");
    }
  });
  report.check("streams", [&] {
    Filling one(subject);
    std::vector<float> first, other_seed, other_stream;
    bool heeds_seed = false, heeds_stream = false;  // in some shape: single numbers may be alike
    for (const std::vector<int64_t>& shape : kShapes) {
      if (tn_status* failed = one.fill(shape, 3, first)) {
        must_fail(failed, "fill");
        continue;
      }
      cxx::check(one.fill(shape, 4, other_seed));
      cxx::check(one.fill(shape, 3, other_stream, 8));
      heeds_seed = heeds_seed || first != other_seed;
      heeds_stream = heeds_stream || first != other_stream;
    }
    require(!heeds_seed || heeds_stream,
            "another stream, which another parameter has: expected other numbers, as of another "
            "seed");
  });
}

}  // namespace tenon::command::check

// SPDX-License-Identifier: Apache-2.0
// "seams.sequences": `samples` sequences x [length, 2] with a number y [1] each, all by a formula
// that a test can repeat: x[s][t][k] = sin(1 + 3 s + 7 t + 11 k), y[s] = cos(s). Where they are
// padded, x is 0 from step s + 1 on.
#include <cmath>

#include "tenon/sdk/role/dataset.hpp"

namespace tenon::test {
namespace {

struct Sequences {
  int64_t samples, length;
  bool padded;
  static Result<Sequences> create(tn_ctx*, const Options& options) {
    return Sequences{options.integer("samples"), options.integer("length"), options.flag("padded")};
  }
  uint64_t size() const { return static_cast<uint64_t>(samples); }
  Status fields(Sink& out) const {
    return out.write(cat(R"([{"name": "x", "dtype": "float32", "shape": [)", length,
                         R"(, 2]}, {"name": "y", "dtype": "float32", "shape": [1]}])"));
  }
  Status batch(std::span<const uint64_t> index, uint64_t, const Outputs& outputs) const {
    auto n = static_cast<int64_t>(index.size());
    TN_TRY(x, outputs.get(0, TN_F32, std::vector<int64_t>{n, length, 2}));
    TN_TRY(y, outputs.get(1, TN_F32, std::vector<int64_t>{n, 1}));
    auto* to = data_of<float>(x);
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i] >= size()) return {TN_OUT_OF_RANGE, cat("no sample ", index[i])};
      auto s = static_cast<double>(index[i]);
      for (int64_t t = 0; t < length; ++t)
        for (int k = 0; k < 2; ++k)
          *to++ =
              padded && t > static_cast<int64_t>(index[i])
                  ? 0.0F
                  : static_cast<float>(std::sin(1 + 3 * s + 7 * static_cast<double>(t) + 11 * k));
      data_of<float>(y)[i] = static_cast<float>(std::cos(s));
    }
    return {};
  }
};

}  // namespace
}  // namespace tenon::test

TENON_DATASET(growing_sequences,
              tenon::test::Sequences,
              "seams.sequences",
              "sequences by a formula",
              R"({"properties": {
  "samples": {"type": "integer", "minimum": 1, "default": 8, "description": "how many"},
  "length": {"type": "integer", "minimum": 1, "default": 8, "description": "steps of each"},
  "padded": {"type": "boolean", "default": false, "description": "with zeros behind step s of sample s"}}})")

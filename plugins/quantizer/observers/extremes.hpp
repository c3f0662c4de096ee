// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every observer keeps: the finite numbers' count and ends, and how many were not finite.

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/observer.hpp"

namespace tenon::quantizer {

struct Extremes {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  uint64_t seen = 0, not_finite = 0;

  template <class T>
  void add(const T* data, size_t n) {
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i += kBlock)
      bad += add_block(data + i, std::min(kBlock, n - i));
    seen += n - bad;
    not_finite += bad;
  }
  void add(const Extremes& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    seen += other.seen;
    not_finite += other.not_finite;
  }
  double magnitude() const { return seen ? std::max(std::abs(low), std::abs(high)) : 0; }

 private:
  static constexpr size_t kBlock = 4096;

  // How many are not finite. The first loop has no branch and counts in the width of its numbers,
  // so that it runs on vectors; the second is for blocks with something to leave out.
  template <class T>
  uint32_t add_block(const T* data, size_t n) {
    constexpr T kMost = std::numeric_limits<T>::max();
    constexpr size_t kLanes = 16;
    T least[kLanes], most[kLanes];
    int32_t odd[kLanes] = {};
    std::fill_n(least, kLanes, kMost);
    std::fill_n(most, kLanes, -kMost);
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) {
        T x = data[i + k];
        odd[k] += !(std::abs(x) <= kMost);  // also for NaN
        least[k] = x < least[k] ? x : least[k];
        most[k] = x > most[k] ? x : most[k];
      }
    }
    uint32_t bad = 0;
    for (int32_t count : odd)
      bad += static_cast<uint32_t>(count);
    T low_end = *std::min_element(least, least + kLanes);
    T high_end = *std::max_element(most, most + kLanes);
    if (bad > 0) {
      bad = 0, i = 0;
      low_end = kMost, high_end = -kMost;
    }
    for (; i < n; ++i) {
      if (!(std::abs(data[i]) <= kMost)) {
        ++bad;
        continue;
      }
      low_end = std::min(low_end, data[i]);
      high_end = std::max(high_end, data[i]);
    }
    if (bad < n) {
      low = std::min(low, static_cast<double>(low_end));
      high = std::max(high, static_cast<double>(high_end));
    }
    return bad;
  }
};

// The ends of a range for these options: symmetric ranges have equal ends.
inline Result<tn_range> make_range(const Extremes& all, double low, double high, bool symmetric) {
  if (all.seen == 0) {
    return Status(TN_FAILED_PRECONDITION, all.not_finite ? cat("saw no finite number, and ",
                                                               all.not_finite, " that are not")
                                                         : "saw no numbers");
  }
  if (symmetric) {
    high = std::max(std::abs(low), std::abs(high));
    low = -high;
  }
  return tn_range{low, high, all.seen, all.not_finite};
}

// Calls use(pointer, n) with floats or doubles.
template <class Use>
Status with_floats(const DLTensor& tensor, Use&& use) {
  if (!is_float(dtype_of(tensor)))
    return invalid(cat("expected a float type to observe, got ", dtype_name(dtype_of(tensor))));
  bool known = with_numbers(tensor, [&](const auto* data) {
    using T = std::remove_cvref_t<decltype(*data)>;
    if constexpr (std::is_floating_point_v<T>)
      use(data, static_cast<size_t>(element_count(tensor)));
  });
  if (!known) return unsupported(cat("cannot observe ", dtype_name(dtype_of(tensor))));
  return {};
}

inline nlohmann::json to_json(const Extremes& e) {
  nlohmann::json out{{"seen", e.seen}, {"not_finite", e.not_finite}};
  if (e.seen) out.update({{"low", e.low}, {"high", e.high}});  // infinities are no JSON
  return out;
}
// Saved state is another process's bytes: every member is checked.
Result<nlohmann::json> parse_saved(std::string_view saved, std::string_view kind);
Result<Extremes> extremes_in(const nlohmann::json& saved);

}  // namespace tenon::quantizer

// Schema members that every observer has.
#define TENON_OBSERVER_OPTIONS                                                \
  R"("bits": {"type": "integer", "minimum": 2, "maximum": 16, "default": 8,)" \
  R"( "description": "bits that the range will be quantized to"},)"           \
  R"( "symmetric": {"type": "boolean", "default": false, "description": "symmetric around 0"})"

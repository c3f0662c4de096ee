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
    T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
    uint64_t finite = 0;
    for (size_t i = 0; i < n; ++i) {
      bool good = std::abs(data[i]) <= std::numeric_limits<T>::max();  // false for NaN
      finite += good;
      least = good && data[i] < least ? data[i] : least;
      most = good && data[i] > most ? data[i] : most;
    }
    seen += finite;
    not_finite += n - finite;
    if (finite == 0) return;
    low = std::min(low, static_cast<double>(least));
    high = std::max(high, static_cast<double>(most));
  }
  void add(const Extremes& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    seen += other.seen;
    not_finite += other.not_finite;
  }
  double magnitude() const { return seen ? std::max(std::abs(low), std::abs(high)) : 0; }
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
  R"( "description": "what the range is for"},)"                              \
  R"( "symmetric": {"type": "boolean", "default": false, "description": "equal ends"})"

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of one element type as another one, by the rule of tenon/convert.hpp.

#include <utility>

#include "tenon/convert.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon {

namespace detail {

template <class To, class From>
Status convert_all(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
      if (!std::in_range<To>(from[i]))
        return {TN_OUT_OF_RANGE,
                cat("expected numbers that int", 8 * sizeof(To), " can hold, got ", from[i])};
    }
    to[i] = static_cast<To>(from[i]);
  }
  return {};
}

}  // namespace detail

// Dense tensors of the same shape, of types that are convertible.
inline Status convert(const DLTensor& from, const DLTensor& to) {
  Status done;
  with_numbers(from, [&](const auto* numbers) {
    const int64_t n = element_count(from);
    switch (dtype_of(to)) {
      case TN_F32:
        done = detail::convert_all(numbers, data_of<float>(to), n);
        break;
      case TN_F64:
        done = detail::convert_all(numbers, data_of<double>(to), n);
        break;
      case TN_I32:
        done = detail::convert_all(numbers, data_of<int32_t>(to), n);
        break;
      default:
        done = detail::convert_all(numbers, data_of<int64_t>(to), n);
    }
  });
  return done;
}

}  // namespace tenon

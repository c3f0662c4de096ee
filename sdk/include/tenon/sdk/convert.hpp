// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of one element type as another one, by the rule of tenon/convert.hpp.

#include <cmath>
#include <utility>

#include "tenon/convert.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon {

namespace detail {

// Whether the number did not become an infinity, and is whole where it was.
template <class To, class From>
bool is_held(From from, To to) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) return std::in_range<To>(from);
  return std::isfinite(static_cast<double>(to)) || !std::isfinite(static_cast<double>(from));
}

template <class From>
Status not_held(uint32_t dtype, From number) {
  return {TN_OUT_OF_RANGE,
          cat("expected numbers that ", dtype_name(dtype), " can hold, got ", number)};
}

template <class To, class From>
Status convert_all(const From* from, uint32_t dtype, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<To>(from[i]);
    if (!is_held(from[i], to[i])) return not_held(dtype, from[i]);
  }
  return {};
}

template <class From>
Status convert_to_halves(const From* from, uint32_t dtype, uint16_t* to, int64_t n) {
  const bool is_half = dtype == TN_F16;
  for (int64_t i = 0; i < n; ++i) {
    const auto number = static_cast<float>(from[i]);
    to[i] = is_half ? half_of_float(number) : bfloat_of_float(number);
    const float held = is_half ? float_of_half(to[i]) : float_of_bfloat(to[i]);
    if (!is_held(from[i], held)) return not_held(dtype, from[i]);
  }
  return {};
}

}  // namespace detail

// Dense tensors of the same shape, of types that are convertible.
inline Status convert(const DLTensor& from, const DLTensor& to) {
  Status done;
  with_numbers(from, [&](const auto* numbers) {
    const int64_t n = element_count(from);
    const uint32_t dtype = dtype_of(to);
    switch (dtype) {
      case TN_F32:
        done = detail::convert_all(numbers, dtype, data_of<float>(to), n);
        break;
      case TN_F64:
        done = detail::convert_all(numbers, dtype, data_of<double>(to), n);
        break;
      case TN_I32:
        done = detail::convert_all(numbers, dtype, data_of<int32_t>(to), n);
        break;
      case TN_I64:
        done = detail::convert_all(numbers, dtype, data_of<int64_t>(to), n);
        break;
      default:
        done = detail::convert_to_halves(numbers, dtype, data_of<uint16_t>(to), n);
    }
  });
  return done;
}

}  // namespace tenon

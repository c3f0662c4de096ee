// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of any element type as double.

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "tenon/cxx/element_type.hpp"
#include "tenon/half.hpp"
#include "tenon/narrow.hpp"

namespace tenon::cxx {

inline bool is_float(uint32_t dtype) {
  return TN_DTYPE_CODE(dtype) == kDLFloat || TN_DTYPE_CODE(dtype) == kDLBfloat;
}

inline bool is_packed_integer(uint32_t dtype) {
  const uint32_t code = TN_DTYPE_CODE(dtype);
  return TN_DTYPE_BITS(dtype) < 8 && (code == kDLInt || code == kDLUInt);
}

template <class T>
T element(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

// Element i of dense memory.
inline double number_at(const void* data, uint32_t dtype, int64_t i) {
  switch (dtype) {
    case TN_F32:
      return element<float>(data, i);
    case TN_F64:
      return element<double>(data, i);
    case TN_F16:
      return float_of_half(element<uint16_t>(data, i));
    case TN_BF16:
      return float_of_bfloat(element<uint16_t>(data, i));
    case TN_BOOL:
    case TN_U8:
      return element<uint8_t>(data, i);
    case TN_I8:
      return element<int8_t>(data, i);
    case TN_I16:
      return element<int16_t>(data, i);
    case TN_U16:
      return element<uint16_t>(data, i);
    case TN_I32:
      return element<int32_t>(data, i);
    case TN_U32:
      return element<uint32_t>(data, i);
    case TN_I64:
      return static_cast<double>(element<int64_t>(data, i));
    case TN_U64:
      return static_cast<double>(element<uint64_t>(data, i));
    default:
      if (const Minifloat* format = minifloat(dtype))
        return number_of(*format, packed_at(data, TN_DTYPE_BITS(dtype), i));
      if (is_packed_integer(dtype)) return static_cast<double>(packed_integer_at(data, dtype, i));
      invalid(cat("expected numbers, got elements of ", dtype_name(dtype)));
  }
}

template <class T>
void store_as(void* data, int64_t i, double value) {
  T element{};
  if constexpr (std::is_integral_v<T>) {
    // 2^63 and 2^64 themselves do not fit, so the upper limit is compared as "less than max + 1".
    double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value > static_cast<double>(std::numeric_limits<T>::min()) - 1 && value < limit)) {
      invalid(cat("expected a number that the element type can hold, got ", value));
    }
  }
  element = static_cast<T>(value);
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
}

inline void store_bits(void* data, int64_t i, uint16_t bits) {
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof bits), &bits, sizeof bits);
}

// Writes one number; throws when the type cannot hold it.
inline void store_number(void* data, uint32_t dtype, int64_t i, double value) {
  switch (dtype) {
    case TN_F32:
      return store_as<float>(data, i, value);
    case TN_F64:
      return store_as<double>(data, i, value);
    case TN_F16:
      return store_bits(data, i, half_of_float(static_cast<float>(value)));
    case TN_BF16:
      return store_bits(data, i, bfloat_of_float(static_cast<float>(value)));
    case TN_BOOL:
      return store_as<uint8_t>(data, i, value != 0);
    case TN_U8:
      return store_as<uint8_t>(data, i, value);
    case TN_I8:
      return store_as<int8_t>(data, i, value);
    case TN_I16:
      return store_as<int16_t>(data, i, value);
    case TN_U16:
      return store_as<uint16_t>(data, i, value);
    case TN_I32:
      return store_as<int32_t>(data, i, value);
    case TN_U32:
      return store_as<uint32_t>(data, i, value);
    case TN_I64:
      return store_as<int64_t>(data, i, value);
    case TN_U64:
      return store_as<uint64_t>(data, i, value);
    default:
      invalid(cat("expected floating point, bool or whole numbers, got elements of ",
                  dtype_name(dtype)));
  }
}

}  // namespace tenon::cxx

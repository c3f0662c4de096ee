// SPDX-License-Identifier: Apache-2.0
#pragma once
// From an element type at run time to a C++ type: dispatch<kNumeric>(dtype, [&]<class T>() {...}).
// Bf16 and F16 are stored in two bytes and computed as float.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tenon/half.hpp"
#include "tenon/sdk/tensor.hpp"

namespace tenon::ops {

struct Bf16 {
  uint16_t bits = 0;
  Bf16() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit Bf16(T value) : bits(bfloat_of_float(static_cast<float>(value))) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit operator T() const {
    return static_cast<T>(float_of_bfloat(bits));
  }
};

struct F16 {
  _Float16 value = 0;
  F16() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit F16(T from) : value(static_cast<_Float16>(from)) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit operator T() const {
    return static_cast<T>(static_cast<float>(value));
  }
};

template <class T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

// What sums of T are kept in.
template <class T>
using Wide = std::conditional_t<kIsFloat<T>,
                                double,
                                std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t>>;

enum TypeSet : unsigned { kFloats = 1, kIntegers = 2, kBools = 4, kNumeric = 3, kAll = 7 };

inline Status no_kernel(uint32_t dtype) {
  return unsupported(cat("element type ", dtype_name(dtype), " is not supported here"));
}

template <unsigned kSet, class F>
Status dispatch(uint32_t dtype, F&& f) {
  if constexpr ((kSet & kFloats) != 0) {
    switch (dtype) {
      case TN_F32:
        return f.template operator()<float>();
      case TN_F64:
        return f.template operator()<double>();
      case TN_F16:
        return f.template operator()<F16>();
      case TN_BF16:
        return f.template operator()<Bf16>();
      default:
        break;
    }
  }
  if constexpr ((kSet & kIntegers) != 0) {
    switch (dtype) {
      case TN_I8:
        return f.template operator()<int8_t>();
      case TN_I16:
        return f.template operator()<int16_t>();
      case TN_I32:
        return f.template operator()<int32_t>();
      case TN_I64:
        return f.template operator()<int64_t>();
      case TN_U8:
        return f.template operator()<uint8_t>();
      case TN_U16:
        return f.template operator()<uint16_t>();
      case TN_U32:
        return f.template operator()<uint32_t>();
      case TN_U64:
        return f.template operator()<uint64_t>();
      default:
        break;
    }
  }
  if constexpr ((kSet & kBools) != 0) {
    if (dtype == TN_BOOL) return f.template operator()<bool>();
  }
  return no_kernel(dtype);
}

}  // namespace tenon::ops

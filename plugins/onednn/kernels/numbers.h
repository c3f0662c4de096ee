// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ type of each element type, and visiting it: visit(type, []<class T>() { ... }). For
// kernels outside of level/; half precision converts element by element.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tenon/whole.hpp"

#include "types.h"

namespace tenon::onednn::kernels {

#if defined(__aarch64__)
using Half = __fp16;  // what g++ 12 calls it there
#else
using Half = _Float16;
#endif

struct Bf16 {  // rounds to nearest even
  uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float value) {
    const uint32_t raw = std::bit_cast<uint32_t>(value);
    bits = std::isnan(value) ? static_cast<uint16_t>(raw >> 16 | 0x40U)
                             : static_cast<uint16_t>((raw + 0x7fffU + (raw >> 16 & 1U)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

template <class T>
constexpr bool kIsReal =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, Bf16>;

// Any number as T: reals become integers as in tenon/whole.hpp, and integers wrap.
template <class T, class From>
T number_cast(From from) {
  if constexpr (std::is_same_v<T, bool>) {
    return from != From(0);
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return Bf16(static_cast<float>(from));
  } else if constexpr (std::is_same_v<T, From> || !kIsReal<From> || kIsReal<T>) {
    return static_cast<T>(from);
  } else {
    return static_cast<T>(integer_of(static_cast<double>(from), std::is_signed_v<T>,
                                     8 * static_cast<uint32_t>(sizeof(T))));
  }
}

// f.template operator()<T>() for the type of the elements.
template <class F>
decltype(auto) visit(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kBf16:
      return f.template operator()<Bf16>();
    case ElementType::kF16:
      return f.template operator()<Half>();
    case ElementType::kU8:
      return f.template operator()<uint8_t>();
    case ElementType::kS8:
      return f.template operator()<int8_t>();
    case ElementType::kI32:
      return f.template operator()<int32_t>();
    case ElementType::kI64:
      return f.template operator()<int64_t>();
    case ElementType::kBool:
      return f.template operator()<bool>();
    case ElementType::kF64:
      return f.template operator()<double>();
    case ElementType::kU16:
      return f.template operator()<uint16_t>();
    case ElementType::kS16:
      return f.template operator()<int16_t>();
    case ElementType::kU32:
      return f.template operator()<uint32_t>();
    case ElementType::kU64:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<float>();
  }
}

// f.template operator()<T>() for an unsigned integer as wide as an element, as which it is moved.
template <class F>
decltype(auto) visit_width(int64_t element_bytes, const F& f) {
  switch (element_bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

constexpr bool is_real(ElementType type) {
  return type <= ElementType::kF16 || type == ElementType::kF64;
}

}  // namespace tenon::onednn::kernels

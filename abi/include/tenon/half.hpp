// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: the 16-bit floating-point types as float, in both directions. The one
// place that knows their bits: host, SDK, plugins and bindings include it.
// float16 is IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits), bfloat16 the upper half of a
// float32. To 16 bits: to the nearest, ties to even; a NaN stays one. Pure functions: any thread.

#include <bit>
#include <cstdint>

namespace tenon {

constexpr float float_of_half(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31;
  const uint32_t exponent = half >> 10 & 31U, fraction = half & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

constexpr uint16_t half_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000U, size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U | (size >> 13 & 0x1ffU));
  if (size >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // from 65520 on
  if (size < 0x38800000U) {  // below 2^-14: units of 2^-24, which adding 0.5 rounds to
    const float units = std::bit_cast<float>(size) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(units) - 0x3f000000U));
  }
  const uint32_t rounded = size + 0xfffU + (size >> 13 & 1U);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

constexpr float float_of_bfloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

constexpr uint16_t bfloat_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace tenon

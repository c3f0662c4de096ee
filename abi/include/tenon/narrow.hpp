// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: floating-point types of at most 8 bits as numbers, in both directions, and elements of less than a byte. The one
// place that knows their bits; half.hpp has those of 16. Pure functions: any thread.
// OCP 8-bit floating point specification 1.0; fnuz: Noune et al., 8-bit numerical formats (2022).

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tenon/dlpack.h"

namespace tenon {

// The rows of the table are the ones that ONNX has.
struct Minifloat {
  uint32_t dtype;
  int exponent_bits, mantissa_bits, bias;
  bool is_signed;
  bool has_inf;   // all ones with mantissa 0; NaN is all ones with the rest
  bool only_nan;  // fn: all ones is the only NaN
  bool zero_nan;  // fnuz: no -0, whose bits are NaN

  constexpr int width() const { return int(is_signed) + exponent_bits + mantissa_bits; }
  constexpr uint8_t sign() const { return static_cast<uint8_t>(is_signed ? 1U << (width() - 1) : 0); }
  constexpr uint8_t ones() const {
    return static_cast<uint8_t>((1U << (exponent_bits + mantissa_bits)) - 1);
  }
  constexpr uint8_t infinity() const {
    return static_cast<uint8_t>(((1U << exponent_bits) - 1) << mantissa_bits);
  }
  // The largest finite magnitude.
  constexpr uint8_t top() const {
    if (has_inf) return static_cast<uint8_t>(infinity() - 1);
    return static_cast<uint8_t>(only_nan ? ones() - 1 : ones());
  }
  // A format without NaN has -0 for it, as ml_dtypes has.
  constexpr uint8_t nan(bool is_negative) const {
    if (zero_nan || (!has_inf && !only_nan)) return static_cast<uint8_t>(1U << (width() - 1));
    return static_cast<uint8_t>(ones() | (is_negative ? sign() : 0));
  }
  // Of bits without their sign.
  double magnitude(uint8_t bits) const {
    const int exponent = bits >> mantissa_bits;
    const double mantissa = bits & ((1 << mantissa_bits) - 1), scale = 1 << mantissa_bits;
    if (mantissa_bits == 0) return std::ldexp(1.0, exponent - bias);
    if (exponent == 0) return std::ldexp(mantissa / scale, 1 - bias);
    return std::ldexp(1 + mantissa / scale, exponent - bias);
  }
};

inline constexpr Minifloat kMinifloats[] = {
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), 4, 3, 7, true, false, true, false},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), 4, 3, 8, true, false, false, true},
    {TN_DTYPE(kDLFloat8_e5m2, 8), 5, 2, 15, true, true, false, false},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), 5, 2, 16, true, false, false, true},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), 8, 0, 127, false, false, true, false},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), 2, 1, 1, true, false, false, false},
};
constexpr const Minifloat* minifloat(uint32_t dtype) {  // nullptr: not one
  for (const Minifloat& format : kMinifloats)
    if (format.dtype == dtype) return &format;
  return nullptr;
}

enum class RoundTo { kNearest, kUp, kDown };
struct CastRule {
  bool saturate = true;               // else what is too large is infinite, or NaN where there is no infinity
  RoundTo round = RoundTo::kNearest;  // of float8_e8m0fnu; others go to the nearest, ties to even
};

inline double number_of(const Minifloat& f, uint8_t bits) {
  if (f.zero_nan && bits == f.sign()) return NAN;
  const bool is_negative = (bits & f.sign()) != 0;
  const auto rest = static_cast<uint8_t>(bits & f.ones());
  if (f.only_nan && rest == f.ones()) return NAN;
  if (f.has_inf && rest >= f.infinity())
    return rest > f.infinity() ? NAN : is_negative ? -HUGE_VAL : HUGE_VAL;
  const double value = f.magnitude(rest);
  return is_negative ? -value : value;
}

namespace detail {

// Of a format that holds powers of two alone.
inline uint8_t power_bits(const Minifloat& f, double value, const CastRule& rule) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 <= fraction < 1
  int power = exponent - 1;
  if (rule.round == RoundTo::kUp && fraction != 0.5) ++power;
  if (rule.round == RoundTo::kNearest && fraction >= 0.75) ++power;  // a tie goes up
  const int biased = power + f.bias;
  if (biased > f.top()) return rule.saturate ? f.top() : f.ones();
  return static_cast<uint8_t>(std::max(biased, 0));
}

}  // namespace detail

inline uint8_t bits_of(const Minifloat& f, double value, const CastRule& rule = {}) {
  const bool is_negative = std::signbit(value);
  if (std::isnan(value) || (!f.is_signed && is_negative && value != 0)) return f.nan(is_negative);
  const uint8_t sign = is_negative ? f.sign() : uint8_t{0};
  const double size = std::fabs(value);
  if (f.mantissa_bits == 0) {
    if (std::isinf(value)) return rule.saturate ? f.top() : f.nan(false);
    return size == 0 ? uint8_t{0} : detail::power_bits(f, size, rule);
  }
  const bool is_finite_only = !f.has_inf && !f.only_nan && !f.zero_nan;
  const uint8_t infinite = f.has_inf ? static_cast<uint8_t>(f.infinity() | sign) : f.nan(is_negative);
  const uint8_t too_large =
      rule.saturate || is_finite_only ? static_cast<uint8_t>(f.top() | sign) : infinite;
  if (std::isinf(value)) return too_large;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - f.bias);
  const double units = std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent));
  const double rounded = std::ldexp(units, exponent - f.mantissa_bits);
  if (rounded > f.magnitude(f.top())) return too_large;
  if (rounded == 0) return f.zero_nan ? uint8_t{0} : sign;
  std::frexp(rounded, &exponent);
  const int biased = std::max(exponent - 1 + f.bias, 0), scale = 1 << f.mantissa_bits;
  if (biased == 0) return static_cast<uint8_t>(int(std::ldexp(rounded, f.bias - 1) * scale) | sign);
  const int mantissa = int((std::ldexp(rounded, f.bias - biased) - 1) * scale);
  return static_cast<uint8_t>(biased << f.mantissa_bits | mantissa | sign);
}

// The ends of an integer type as doubles, which those of 64 bits are rounded to.
struct IntegerEnds {
  double low, high;
};
inline IntegerEnds integer_ends(bool is_signed, uint32_t bits) {
  const double top = std::ldexp(1.0, static_cast<int>(bits) - int(is_signed));
  return {is_signed ? -top : 0, top - 1};
}
inline IntegerEnds integer_ends(uint32_t dtype) {
  return integer_ends(TN_DTYPE_CODE(dtype) == kDLInt, TN_DTYPE_BITS(dtype));
}

// Element i of dense memory of 2, 4 or 8 bits each, the first in a byte's low bits. Writing leaves the neighbours in a byte as they
// are: one thread per byte.
inline uint8_t packed_at(const void* data, uint32_t bits, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const int64_t each = 8 / bits;
  return static_cast<uint8_t>(bytes[i / each] >> (i % each * bits) & ((1U << bits) - 1));
}
inline void put_packed(void* data, uint32_t bits, int64_t i, uint8_t value) {
  const int64_t each = 8 / bits, shift = i % each * bits;
  const auto mask = static_cast<uint8_t>(((1U << bits) - 1) << shift);
  uint8_t& byte = static_cast<uint8_t*>(data)[i / each];
  byte = static_cast<uint8_t>((byte & ~mask) | (value << shift & mask));
}
// The same of an integer, whose sign is extended.
inline int64_t packed_integer_at(const void* data, uint32_t dtype, int64_t i) {
  const uint32_t bits = TN_DTYPE_BITS(dtype);
  const int64_t value = packed_at(data, bits, i);
  const bool is_negative = TN_DTYPE_CODE(dtype) == kDLInt && (value >> (bits - 1) & 1) != 0;
  return is_negative ? value - (int64_t{1} << bits) : value;
}

}  // namespace tenon

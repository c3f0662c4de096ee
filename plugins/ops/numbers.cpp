// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "dispatch.hpp"

namespace tenon::ops {
namespace {

// OCP 8-bit floating point specification 1.0; fnuz: Noune et al., 8-bit numerical formats (2022).
constexpr Minifloat kMinifloats[] = {
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), 4, 3, 7, true, false, true, false},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), 4, 3, 8, true, false, false, true},
    {TN_DTYPE(kDLFloat8_e5m2, 8), 5, 2, 15, true, true, false, false},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), 5, 2, 16, true, false, false, true},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), 8, 0, 127, false, false, true, false},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), 2, 1, 1, true, false, false, false},
};

int width(const Minifloat& f) {
  return int(f.is_signed) + f.exponent_bits + f.mantissa_bits;
}
uint8_t ones(const Minifloat& f) {
  return static_cast<uint8_t>((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
}
uint8_t inf_bits(const Minifloat& f) {
  return static_cast<uint8_t>(((1u << f.exponent_bits) - 1) << f.mantissa_bits);
}
// The largest finite magnitude.
uint8_t top(const Minifloat& f) {
  if (f.has_inf) return static_cast<uint8_t>(inf_bits(f) - 1);
  return static_cast<uint8_t>(f.only_nan ? ones(f) - 1 : ones(f));
}
uint8_t nan_bits(const Minifloat& f, bool negative) {
  auto sign = static_cast<uint8_t>(f.is_signed && negative ? 1u << (width(f) - 1) : 0);
  if (f.zero_nan) return static_cast<uint8_t>(1u << (width(f) - 1));
  if (f.has_inf || f.only_nan) return static_cast<uint8_t>(ones(f) | sign);
  return static_cast<uint8_t>(
      1u << (width(f) - 1));  // no NaN in the format: -0, as ml_dtypes has it
}

double magnitude(const Minifloat& f, uint8_t bits) {
  int exponent = bits >> f.mantissa_bits;
  double mantissa = bits & ((1 << f.mantissa_bits) - 1);
  double scale = 1 << f.mantissa_bits;
  if (f.mantissa_bits == 0) return std::ldexp(1.0, exponent - f.bias);
  if (exponent == 0) return std::ldexp(mantissa / scale, 1 - f.bias);
  return std::ldexp(1 + mantissa / scale, exponent - f.bias);
}

uint8_t encode_power(const Minifloat& f, double value, const CastRule& rule) {
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, 0.5 <= f < 1
  int power = exponent - 1;
  bool exact = fraction == 0.5;
  if (rule.round == RoundTo::kUp && !exact) ++power;
  if (rule.round == RoundTo::kNearest && fraction >= 0.75) ++power;  // a tie goes up
  int biased = power + f.bias;
  if (biased > top(f)) return rule.saturate ? top(f) : ones(f);
  return static_cast<uint8_t>(std::max(biased, 0));
}

// 2 and 4 bit integers and 4 bit floats lie packed, first element in the low bits.
uint8_t load_bits(const void* data, uint32_t bits, int64_t i) {
  auto* bytes = static_cast<const uint8_t*>(data);
  if (bits == 8) return bytes[i];
  int64_t per_byte = 8 / bits;
  return static_cast<uint8_t>(bytes[i / per_byte] >> (i % per_byte * bits) & ((1u << bits) - 1));
}
void store_bits(void* data, uint32_t bits, int64_t i, uint8_t code) {
  auto* bytes = static_cast<uint8_t*>(data);
  if (bits == 8) {
    bytes[i] = code;
    return;
  }
  int64_t per_byte = 8 / bits, shift = i % per_byte * bits;
  auto mask = static_cast<uint8_t>(((1u << bits) - 1) << shift);
  uint8_t& byte = bytes[i / per_byte];
  byte = static_cast<uint8_t>((byte & ~mask) | (code << shift & mask));
}

bool is_packed_integer(uint32_t dtype) {
  return is_integer(dtype) && TN_DTYPE_BITS(dtype) < 8;
}

template <class Number>
Number load_wide(const void* data, uint32_t dtype, int64_t i) {
  Number out{};
  if (dtype == TN_BOOL) return static_cast<Number>(static_cast<const uint8_t*>(data)[i] != 0);
  Status ignored = dispatch<kAll>(dtype, [&]<class T>() -> Status {
    out = static_cast<Number>(static_cast<const T*>(data)[i]);
    return {};
  });
  return out;
}

// C++ leaves a float that does not fit an integer undefined; here it wraps through 64 bits, and
// what is not a number gives the lowest.
int64_t to_integer(double value) {
  if (!(value > -9.3e18 && value < 1.85e19)) return INT64_MIN;
  if (value < -9223372036854775808.0) return INT64_MIN;
  if (value < 9223372036854775808.0) return static_cast<int64_t>(value);
  return static_cast<int64_t>(static_cast<uint64_t>(value));
}

}  // namespace

const Minifloat* minifloat(uint32_t dtype) {
  for (const Minifloat& format : kMinifloats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

double decode(const Minifloat& f, uint8_t bits) {
  if (f.zero_nan && bits == 1u << (width(f) - 1)) return NAN;
  bool negative = f.is_signed && bits >> (width(f) - 1) & 1;
  auto rest = static_cast<uint8_t>(bits & ones(f));
  if (f.only_nan && rest == ones(f)) return NAN;
  if (f.has_inf && rest >= inf_bits(f))
    return rest > inf_bits(f) ? NAN : negative ? -HUGE_VAL : HUGE_VAL;
  double value = magnitude(f, rest);
  return negative ? -value : value;
}

uint8_t encode(const Minifloat& f, double value, const CastRule& rule) {
  bool negative = std::signbit(value);
  if (std::isnan(value) || (!f.is_signed && negative && value != 0)) return nan_bits(f, negative);
  auto sign = static_cast<uint8_t>(f.is_signed && negative ? 1u << (width(f) - 1) : 0);
  double size = std::fabs(value);
  if (f.mantissa_bits == 0) {
    if (std::isinf(value)) return rule.saturate ? top(f) : nan_bits(f, false);
    return size == 0 ? 0 : encode_power(f, size, rule);
  }
  auto overflow = [&]() -> uint8_t {
    bool finite_only = !f.has_inf && !f.only_nan && !f.zero_nan;
    if (rule.saturate || finite_only) return static_cast<uint8_t>(top(f) | sign);
    return f.has_inf ? static_cast<uint8_t>(inf_bits(f) | sign) : nan_bits(f, negative);
  };
  if (std::isinf(value)) return overflow();
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - f.bias);
  // In units of the last place, to the nearest even.
  double units = std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent));
  double rounded = std::ldexp(units, exponent - f.mantissa_bits);
  if (rounded > magnitude(f, top(f))) return overflow();
  if (rounded == 0) return f.zero_nan ? 0 : sign;
  int place = 0;
  std::frexp(rounded, &place);
  int biased = std::max(place - 1 + f.bias, 0);
  double scale = 1 << f.mantissa_bits;
  if (biased <= 0) return static_cast<uint8_t>(int(std::ldexp(rounded, f.bias - 1) * scale) | sign);
  int mantissa = int((std::ldexp(rounded, f.bias - biased) - 1) * scale);
  return static_cast<uint8_t>(biased << f.mantissa_bits | mantissa | sign);
}

bool is_integer(uint32_t dtype) {
  return dtype != TN_DTYPE_NONE &&
         (TN_DTYPE_CODE(dtype) == kDLInt || TN_DTYPE_CODE(dtype) == kDLUInt);
}
double lowest_of(uint32_t dtype) {
  return TN_DTYPE_CODE(dtype) == kDLInt ? -std::ldexp(1.0, int(TN_DTYPE_BITS(dtype)) - 1) : 0;
}
double highest_of(uint32_t dtype) {
  int bits = int(TN_DTYPE_BITS(dtype)) - int(TN_DTYPE_CODE(dtype) == kDLInt);
  return std::ldexp(1.0, bits) - 1;
}

bool is_supported(uint32_t dtype) {
  if (minifloat(dtype) || is_packed_integer(dtype)) return true;
  return dispatch<kAll>(dtype, []<class T>() -> Status { return {}; }).ok();
}

double load_number(const void* data, uint32_t dtype, int64_t i) {
  if (const Minifloat* format = minifloat(dtype))
    return decode(*format, load_bits(data, TN_DTYPE_BITS(dtype), i));
  if (is_packed_integer(dtype)) return static_cast<double>(load_integer(data, dtype, i));
  return load_wide<double>(data, dtype, i);
}

int64_t load_integer(const void* data, uint32_t dtype, int64_t i) {
  if (!is_packed_integer(dtype)) return load_wide<int64_t>(data, dtype, i);
  uint32_t bits = TN_DTYPE_BITS(dtype);
  int64_t code = load_bits(data, bits, i);
  bool negative = TN_DTYPE_CODE(dtype) == kDLInt && code >> (bits - 1) & 1;
  return negative ? code - (int64_t{1} << bits) : code;
}

void store_number(void* data, uint32_t dtype, int64_t i, double value, const CastRule& rule) {
  if (const Minifloat* format = minifloat(dtype))
    return store_bits(data, TN_DTYPE_BITS(dtype), i, encode(*format, value, rule));
  if (dtype == TN_BOOL) {
    static_cast<bool*>(data)[i] = value != 0;
  } else if (is_integer(dtype)) {
    store_integer(data, dtype, i, to_integer(value));
  } else {
    Status ignored = dispatch<kFloats>(dtype, [&]<class T>() -> Status {
      static_cast<T*>(data)[i] = static_cast<T>(value);
      return {};
    });
  }
}

void store_integer(void* data, uint32_t dtype, int64_t i, int64_t value) {
  if (is_packed_integer(dtype))
    return store_bits(data, TN_DTYPE_BITS(dtype), i, static_cast<uint8_t>(value));
  if (!is_integer(dtype)) return store_number(data, dtype, i, static_cast<double>(value));
  Status ignored = dispatch<kIntegers>(dtype, [&]<class T>() -> Status {
    static_cast<T*>(data)[i] = static_cast<T>(value);
    return {};
  });
}

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once
// pow, sin and cos of f32 values, computed in f64: the condition number of pow, and the argument
// reduction of sin and cos, cost more bits than f32 has. Errors are under 1e-9 before rounding.

#include "simd.h"

extern "C" {
double sin(double);
double cos(double);
}

namespace tenon::onednn::kernels::TENON_LEVEL {

static inline Vd splat_d(double x) {
  return x - Vd{};
}
static inline Vd widen(const float* p) {
  HalfLanes<float> half;
  std::memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, Vd);
}
static inline void narrow(float* p, Vd v) {
  auto half = __builtin_convertvector(v, HalfLanes<float>);
  std::memcpy(p, &half, sizeof half);
}
static inline Vl bits(Vd v) {
  return reinterpret_cast<Vl>(v);
}
static inline Vd from_bits(Vl v) {
  return reinterpret_cast<Vd>(v);
}
// |x| < 2^51: the integer nearest to x in the low bits, without a conversion that AVX2 lacks.
static inline Vl round_to_long(Vd x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  return bits(x + kMagic) - bits(splat_d(kMagic));
}

// log2 of a positive, normal f64: 2 atanh(s) / ln2 with s = (m - 1) / (m + 1), |s| < 0.1716.
static inline Vd log2_positive(Vd x) {
  Vl offset = bits(x) - 0x3fe6a09e667f3bcdL;
  Vl exponent = offset >> 52;
  Vd m = from_bits((offset & 0x000fffffffffffffL) + 0x3fe6a09e667f3bcdL);
  Vd e = from_bits(exponent + bits(splat_d(6755399441055744.0))) - 6755399441055744.0;
  Vd s = (m - 1.0) / (m + 1.0);
  Vd z = s * s;
  Vd p = splat_d(1.0 / 13.0);
  p = fma(p, z, splat_d(1.0 / 11.0));
  p = fma(p, z, splat_d(1.0 / 9.0));
  p = fma(p, z, splat_d(1.0 / 7.0));
  p = fma(p, z, splat_d(1.0 / 5.0));
  p = fma(p, z, splat_d(1.0 / 3.0));
  p = fma(p, z, splat_d(1.0));
  return fma(s * p, splat_d(2.8853900817779268), e);
}

// 2^x for |x| <= 1000: Taylor's series on [-1/2, 1/2] ln2.
static inline Vd exp2_bounded(Vd x) {
  Vd n = round_even(x);
  Vd r = (x - n) * 0.6931471805599453;
  Vd p = splat_d(1.0 / 362880);
  p = fma(p, r, splat_d(1.0 / 40320));
  p = fma(p, r, splat_d(1.0 / 5040));
  p = fma(p, r, splat_d(1.0 / 720));
  p = fma(p, r, splat_d(1.0 / 120));
  p = fma(p, r, splat_d(1.0 / 24));
  p = fma(p, r, splat_d(1.0 / 6));
  p = fma(p, r, splat_d(0.5));
  p = fma(p, r, splat_d(1.0));
  p = fma(p, r, splat_d(1.0));
  return from_bits(bits(p) + (round_to_long(n) << 52));
}

static inline Vd absolute(Vd x) {
  return from_bits(bits(x) & INT64_MAX);
}

// C's pow: x^0 = 1^y = 1; a negative x wants an integer y, whose parity gives the sign.
static inline Vd pow(Vd x, Vd y) {
  constexpr double kInf = __builtin_inf();
  Vd a = absolute(x);
  // log2 is wrong for 0, infinity and NaN; infinite stand-ins make the product right there.
  Vd l = log2_positive(a);
  l = a == 0.0 ? splat_d(-kInf) : (a == kInf ? splat_d(kInf) : (a == a ? l : x));
  Vd product = y * l;
  Vd bounded = product < -300.0 ? splat_d(-300.0) : product;
  bounded = bounded > 300.0 ? splat_d(300.0) : bounded;  // beyond the range of f32
  Vd result = exp2_bounded(bounded);
  result = product == product ? result : product;
  // f32 integers of 2^53 and more are even, as x - 2 floor(x/2) finds.
  Vd half = y * 0.5;
  Vl is_whole = round_even(y) == y;
  Vl is_odd = is_whole & (round_even(half) != half);
  Vl negative = bits(x) < 0;
  result = (is_odd & negative) != 0 ? -result : result;
  Vl finite_negative = (x < 0.0) & (x > -kInf);
  result = (finite_negative & ~is_whole) != 0 ? splat_d(__builtin_nan("")) : result;
  result = (x == -1.0) & (absolute(y) == kInf) ? splat_d(1.0) : result;
  return (y == 0.0) | (x == 1.0) ? splat_d(1.0) : result;
}

// sin(x + quarter * pi/2): x - n pi/2 with pi/2 in three parts is good to 1e-10 for |x| <= 1e6.
static inline Vd sin_shifted(Vd x, int64_t quarter) {
  Vd n = round_even(x * 0.6366197723675814);
  Vd r = fma(n, splat_d(-1.5707963267341256), x);  // 33 bits
  r = fma(n, splat_d(-6.077100506303966e-11), r);  // the next 33
  r = fma(n, splat_d(-2.0222662487959506e-21), r);
  Vd z = r * r;
  Vd s = splat_d(-1.0 / 39916800);
  s = fma(s, z, splat_d(1.0 / 362880));
  s = fma(s, z, splat_d(-1.0 / 5040));
  s = fma(s, z, splat_d(1.0 / 120));
  s = fma(s, z, splat_d(-1.0 / 6));
  s = fma(s * z, r, r);
  Vd c = splat_d(1.0 / 479001600);
  c = fma(c, z, splat_d(-1.0 / 3628800));
  c = fma(c, z, splat_d(1.0 / 40320));
  c = fma(c, z, splat_d(-1.0 / 720));
  c = fma(c, z, splat_d(1.0 / 24));
  c = fma(c, z, splat_d(-0.5));
  c = fma(c, z, splat_d(1.0));
  Vl turn = round_to_long(n) + quarter;
  Vd value = (turn & 1) != 0 ? c : s;
  return (turn & 2) != 0 ? -value : value;
}

constexpr double kTrigLimit = 1e6;
static inline Vd sin(Vd x, Vd) {
  Vd value = sin_shifted(x, 0);
  for (int i = 0; i < kHalfLanes; ++i) {
    if (!(__builtin_fabs(x[i]) <= kTrigLimit)) value[i] = ::sin(x[i]);
  }
  return x == 0.0 ? x : value;
}
static inline Vd cos(Vd x, Vd) {
  Vd value = sin_shifted(x, 1);
  for (int i = 0; i < kHalfLanes; ++i) {
    if (!(__builtin_fabs(x[i]) <= kTrigLimit)) value[i] = ::cos(x[i]);
  }
  return value;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL

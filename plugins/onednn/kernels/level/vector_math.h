// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementary functions over one register. f32 errors are measured by vector_math_test over a sweep
// of all exponents: exp, log, tanh, sigmoid, erf within 2 ulp, pow, sin, cos, rounded from f64.
// Infinities, NaN, signed zeros and denormals give what C's functions give.
// The polynomials are minimax fits of our own (iteratively reweighted least squares in f64); the
// schemes are the usual ones (J.-M. Muller, Elementary Functions, 3rd ed., chapters 3 and 11).

#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

constexpr float kInfinity = __builtin_inff();
constexpr float kLog2e = 1.44269504F;
constexpr float kLn2High = 0.693359375F;  // 9 bits: n * kLn2High is exact for |n| <= 2^15
constexpr float kLn2Low = -2.12194440e-4F;

// 2^n for n in [-126, 127].
static inline Vf power_of_two(Vi n) {
  return from_bits((n + 127) << 23);
}

// expm1(r) for |r| <= ln2/2: r + r^2 q(r), relative error 1.4e-8.
static inline Vf expm1_reduced(Vf r) {
  Vf q = splat(1.388251639e-03F);
  q = fma(q, r, splat(8.366547133e-03F));
  q = fma(q, r, splat(4.166720071e-02F));
  q = fma(q, r, splat(1.666654342e-01F));
  q = fma(q, r, splat(4.999999815e-01F));
  return fma(r * r, q, r);
}

static inline Vf exp(Vf x) {
  // Past these bounds the result is 0 or infinity anyway; NaN goes through.
  Vf clamped = x < -104.0F ? splat(-104.0F) : x;
  clamped = clamped > 89.0F ? splat(89.0F) : clamped;
  Vf n = round_even(clamped * kLog2e);
  Vf r = fma(n, splat(-kLn2High), clamped);
  r = fma(n, splat(-kLn2Low), r);
  Vf p = expm1_reduced(r) + 1.0F;
#if defined(__AVX512F__)
  // What lies past the denormals takes no part: an underflow costs the CPU some 60 ns.
  const __mmask16 is_seen = _mm512_cmp_ps_mask(x, splat(-104.0F), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(is_seen, p, n);
#else
  // Two factors, because 2^n alone leaves the range before the result does.
  Vi whole = round_to_int(n);
  Vi half = whole >> 1;
  return p * power_of_two(half) * power_of_two(whole - half);
#endif
}

// For x <= 0 as softmax has it: no overflow, and results under 2^-126 are flushed to 0.
static inline Vf exp_nonpositive(Vf x) {
  Vf n = round_even(x * kLog2e);
  Vf r = fma(n, splat(-kLn2High), x);
  r = fma(n, splat(-kLn2Low), r);
  Vf p = expm1_reduced(r) + 1.0F;
  Vi scaled = bits(p) + (round_to_int(n) << 23);
  return x < -87.0F ? Vf{} : from_bits(scaled);
}

// The same for results that are rounded to bf16: relative error 2^-13.7. Masked scores are far
// below the least exponent, and an underflow costs the CPU some 60 ns.
static inline Vf short_exp_nonpositive(Vf x) {
  Vf t = max_fast(splat(-150.0F), x) * kLog2e;
  Vf n = round_even(t);
  Vf f = t - n;
  Vf p = splat(5.517167e-02F);
  p = fma(p, f, splat(2.4261113e-01F));
  p = fma(p, f, splat(6.9326099e-01F));
  p = fma(p, f, splat(9.9992807e-01F));
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(n, splat(-125.0F), _CMP_NLT_UQ), p, n);
#else
  Vi scaled = bits(p) + (round_to_int(n) << 23);
  return n < -125.0F ? Vf{} : from_bits(scaled);
#endif
}

// tanh(x) = -E / (E + 2) with E = expm1(-2|x|): no cancellation anywhere, one division.
static inline Vf tanh(Vf x) {
  Vf y = absolute(x) * -2.0F;
  y = y < -20.0F ? splat(-20.0F) : y;
  Vf n = round_even(y * kLog2e);
  Vf r = fma(n, splat(-kLn2High), y);
  r = fma(n, splat(-kLn2Low), r);
  Vf scale = power_of_two(round_to_int(n));
  Vf e = fma(scale, expm1_reduced(r), scale - 1.0F);
  return copy_sign(e / (e + 2.0F), x);
}

// exp(-|x|) never overflows, so that the tail keeps its denormals.
static inline Vf sigmoid(Vf x) {
  Vf e = exp(-absolute(x));
  Vf numerator = x < 0.0F ? e : splat(1.0F);
  return numerator / (1.0F + e);
}

// x sigmoid(alpha x). With AVX-512 as x / (1 + 2^t): where 2^t has lost digits, at large t, the
// result is near 0. The bound keeps the reciprocal a normal number, and one Newton step gives it
// the digits of a division; beyond it the result is 0. NaN goes through.
static inline Vf swish(Vf x, Vf alpha) {
#if defined(__AVX512F__)
  const Vf wanted = x * (alpha * -kLog2e);
  const __mmask16 is_seen = _mm512_cmp_ps_mask(wanted, splat(125.0F), _CMP_NGT_UQ);
  const Vf t = _mm512_min_ps(splat(125.0F), wanted);
  const Vf f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  Vf p = splat(1.877575065e-03F);
  p = fma(p, f, splat(8.989344351e-03F));
  p = fma(p, f, splat(5.582631379e-02F));
  p = fma(p, f, splat(2.401536256e-01F));
  p = fma(p, f, splat(6.931530833e-01F));
  p = fma(p, f, splat(9.999999404e-01F));
  const Vf d = 1.0F + Vf(_mm512_scalef_ps(p, t));  // which takes the floor of t
  const Vf r = _mm512_rcp14_ps(d);
  return _mm512_maskz_mul_ps(is_seen, x, fma(r, fma(-d, r, splat(1.0F)), r));
#else
  return x * sigmoid(x * alpha);
#endif
}

// log(2^e m) = e ln2 + log(m), m in [sqrt(1/2), sqrt(2)); denormals are scaled by 2^23 first.
static inline Vf log(Vf x) {
  Vi tiny = x < 1.17549435e-38F;
  Vf scaled = tiny ? x * 8388608.0F : x;
  Vi offset = bits(scaled) - 0x3f3504f3;
  Vf e = to_float((offset >> 23) - (tiny ? splat_i(23) : Vi{}));
  Vf f = from_bits((offset & 0x007fffff) + 0x3f3504f3) - 1.0F;
  Vf p = splat(-7.635654898e-02F);
  p = fma(p, f, splat(1.276332704e-01F));
  p = fma(p, f, splat(-1.316058255e-01F));
  p = fma(p, f, splat(1.420155306e-01F));
  p = fma(p, f, splat(-1.662329837e-01F));
  p = fma(p, f, splat(2.000123338e-01F));
  p = fma(p, f, splat(-2.500082271e-01F));
  p = fma(p, f, splat(3.333333166e-01F));
  Vf square = f * f;
  Vf tail = fma(p, square * f, fma(e, splat(kLn2Low), square * -0.5F));
  Vf result = fma(e, splat(kLn2High), f + tail);
  result = x > 0.0F ? result : (x == 0.0F ? splat(-kInfinity) : splat(__builtin_nanf("")));
  return x < kInfinity ? result : (x == kInfinity ? x : x * 1.0F);
}

// log(1+x) with the rounding error of 1+x given back (W. Kahan's correction).
static inline Vf log1p(Vf x) {
  Vf u = 1.0F + x;
  Vf corrected = log(u) + (x - (u - 1.0F)) / u;
  Vf result = u == 1.0F ? x : corrected;
  return (u > 0.0F) & (u < kInfinity) ? result : log(u);
}

static inline Vf expm1(Vf x) {
  Vf clamped = x < -18.0F ? splat(-18.0F) : x;
  clamped = clamped > 40.0F ? splat(40.0F) : clamped;
  Vf n = round_even(clamped * kLog2e);
  Vf r = fma(n, splat(-kLn2High), clamped);
  r = fma(n, splat(-kLn2Low), r);
  Vf scale = power_of_two(round_to_int(n));
  Vf small = fma(scale, expm1_reduced(r), scale - 1.0F);
  small = x == 0.0F ? x : small;
  return x > 20.0F ? exp(x) : small;
}

// Near 0 an odd polynomial, else 1 - erfc(|x|) with log(erfc) as a polynomial; both on [0, 4].
static inline Vf erf(Vf x) {
  Vf a = absolute(x);
  Vf square = x * x;
  Vf near = splat(-6.090385668e-04F);
  near = fma(near, square, splat(5.011968580e-03F));
  near = fma(near, square, splat(-2.677891362e-02F));
  near = fma(near, square, splat(1.128214098e-01F));
  near = fma(near, square, splat(-3.761252330e-01F));
  near = fma(near, square, splat(1.283791540e-01F));  // 2/sqrt(pi) - 1: x + x*p keeps the last bit
  near = fma(x, near, x);
  Vf far = a > 4.0F ? splat(4.0F) : a;
  Vf p = splat(1.982196713e-04F);
  p = fma(p, far, splat(-3.065490437e-03F));
  p = fma(p, far, splat(2.231521350e-02F));
  p = fma(p, far, splat(-1.041136794e-01F));
  p = fma(p, far, splat(-6.369760828e-01F));
  p = fma(p, far, splat(-1.127797243e+00F));
  p = fma(p, far, splat(-1.664476118e-04F));
  Vf rest = copy_sign(1.0F - exp_nonpositive(p), x);
  return a < 0.9F ? near : (x == x ? rest : x);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL

// SPDX-License-Identifier: Apache-2.0
// Infinities, NaN, signed zeros and denormals give what C's functions give.

#include "elementary.h"

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "approximation.h"

namespace tenon::onednn::kernels::code {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504F;
// ln 2 in two parts, both positive, so that infinity times them adds up; n times the first is
// exact.
constexpr float kLn2High = 0.693145751953125F;
constexpr float kLn2Low = 1.42860677e-6F;
// Past these exp is 0 or infinity.
constexpr float kLeastExponent = -104.0F;
constexpr float kMostExponent = 89.0F;
constexpr int kMantissaBits = 23;

// Added to x, rounds it to whole sixteenths (of 16 lanes; eighths of 8) and leaves their number in
// the low bits: 1.5 * 2^19 or 2^20.
float to_parts(const VectorCode& c) {
  return 12582912.0F / static_cast<float>(c.lanes());
}

struct Reduced {  // x = n ln2 + r, n in whole parts
  Value shifted, n, r, power;
};

const Table& powers(const VectorCode& c) {
  static const Table kSixteenths = powers_of_two(16);
  static const Table kEighths = powers_of_two(8);
  return c.isa() == Isa::kAvx512 ? kSixteenths : kEighths;
}

// In one part ln 2 is off by 2^-26 of it.
constexpr float kLn2[] = {kLn2High, kLn2Low};
constexpr float kShortLn2[] = {kLn2High + kLn2Low};

Reduced reduce(VectorCode& c, Value x, std::span<const float> ln2) {
  Value shifted = c.fma(x, c.number(kLog2e), c.number(to_parts(c)));
  Value n = c.sub(shifted, c.number(to_parts(c)));
  Value r = x;
  for (float part : ln2)
    r = c.fnma(n, c.number(part), r);
  return {shifted, n, r, c.look_up(shifted, c.table(powers(c)))};
}

// e^r - 1 = r (1 + r/2 + r^2/6) for |r| <= ln2/32, relative error 1e-8.
Value cubic_expm1(VectorCode& c, Value r) {
  Value p = c.fma(r, c.number(0.16666757F), c.number(0.5F));
  return c.fma(c.mul(r, r), p, r);
}

// r (1 + r/2): what is missing is 2^-19 at most for |r| <= ln2/32.
Value square_expm1(VectorCode& c, Value r) {
  return c.fma(c.mul(r, r), c.number(0.5F), r);
}

// One term more, for |r| <= ln2/16: relative error 1e-8.
Value quartic_expm1(VectorCode& c, Value r) {
  Value p = c.fma(r, c.number(0.041672F), c.number(0.166666667F));
  p = c.fma(r, p, c.number(0.5F));
  return c.fma(c.mul(r, r), p, r);
}

// Where x is out of range n says it all; r, which has lost its meaning there, is kept small.
Value small(VectorCode& c, Value r) {
  return c.smaller_magnitude(r, c.number(0.03F));
}

// NaN goes through.
Value within_range(VectorCode& c, Value x) {
  return c.min(c.number(kMostExponent), c.max(c.number(kLeastExponent), x));
}

// y * 2^floor(n) as two factors, because one leaves the range before the result does. With
// w = floor(n), their exponents are floor(w / 2) and w - floor(w / 2).
Value scaled(VectorCode& c, Value y, Value shifted) {
  constexpr uint32_t kTwoBiases = 254;
  constexpr uint8_t kBitsOfParts = 3;
  const auto zero = std::bit_cast<uint32_t>(to_parts(c));
  Value both = c.sub_bits(shifted, c.bits(zero - (kTwoBiases << kBitsOfParts)));
  both = c.shift_signed(both, kBitsOfParts);
  Value half = c.shift_signed(both, 1);
  Value rest = c.sub_bits(both, half);
  return c.mul(c.mul(y, c.shift_left(half, kMantissaBits)), c.shift_left(rest, kMantissaBits));
}

// power * e^r * 2^floor(n), by what there is for |r| up to half a sixteenth or half an eighth.
Value exp_by(VectorCode& c,
             Value x,
             std::span<const float> ln2,
             Value (*expm1_of_sixteenths)(VectorCode&, Value),
             Value (*expm1_of_eighths)(VectorCode&, Value)) {
  if (c.isa() == Isa::kAvx512) {
    Reduced parts = reduce(c, x, ln2);
    Value rest = expm1_of_sixteenths(c, small(c, parts.r));
    return c.scale(c.fma(parts.power, rest, parts.power), parts.n);
  }
  Reduced parts = reduce(c, within_range(c, x), ln2);
  Value rest = expm1_of_eighths(c, parts.r);
  return scaled(c, c.fma(parts.power, rest, parts.power), parts.shifted);
}

// An odd function as pieces over |x|; the sign is put back.
Value odd_function(VectorCode& c, Value x, const OddPieces& pieces) {
  const float shift = static_cast<float>(pieces.step * 12582912.0);  // 1.5 * 2^23
  const float last = static_cast<float>(pieces.step * (12582912.0 + c.lanes() - 1));
  Value a = c.absolute(x);
  Value index = c.min(c.add(a, c.number(shift)), c.number(last));
  Value middle = c.look_up(index, c.table(pieces.middles));
  Value bounded = c.min(c.number(static_cast<float>(pieces.end)), a);
  Value d = c.sub(bounded, middle);
  Value y = c.look_up(index, c.table(pieces.coefficients.back()));
  for (size_t k = pieces.coefficients.size() - 1; k-- > 0;)
    y = c.fma(y, d, c.look_up(index, c.table(pieces.coefficients[k])));
  return c.or_and(y, x, c.bits(0x80000000));
}

// (log(1+f) - f + f^2/2) / f^3
double log_tail(double f) {
  return (std::log1p(f) - f + f * f / 2) / (f * f * f);
}

struct Parts {  // x = 2^exponent * mantissa, the mantissa in [3/4, 3/2)
  Value mantissa, exponent;
};

// Denormals are scaled by 2^23 first. What is not a positive number gives no meaning.
Parts take_apart(VectorCode& c, Value x) {
  constexpr float kLeastNormal = 1.17549435e-38F;
  constexpr auto kThreeQuarters = std::bit_cast<uint32_t>(0.75F);
  Value normal =
      c.blend(Compare::kLt, x, c.number(kLeastNormal), c.mul(x, c.number(8388608.0F)), x);
  Value lost = c.blend(Compare::kLt, x, c.number(kLeastNormal), c.number(23.0F), c.number(0.0F));
  Value whole = c.shift_signed(c.sub_bits(normal, c.bits(kThreeQuarters)), kMantissaBits);
  Value mantissa = c.sub_bits(normal, c.shift_left(whole, kMantissaBits));
  return {mantissa, c.sub(c.from_whole(whole), lost)};
}

// log(x) where x is a positive number, else what C gives.
Value with_edges(VectorCode& c, Value x, Value logarithm) {
  Value zero = c.number(0.0F);
  Value finite = c.blend(Compare::kLt, x, c.number(kInfinity), logarithm, x);
  Value at_zero = c.blend(Compare::kEq, x, zero, c.number(-kInfinity),
                          c.number(std::numeric_limits<float>::quiet_NaN()));
  return c.blend(Compare::kGt, x, zero, finite, at_zero);
}

// log(2^e (1 + f)) with f in [-1/4, 1/2).
Value log_of(VectorCode& c, Value e, Value m) {
  static const std::vector<double> kTail = interpolate(log_tail, -0.25, 0.5, 8);
  Value f = c.sub(m, c.number(1.0F));
  Value p = polynomial(c, kTail, f);
  Value square = c.mul(f, f);
  Value tail = c.fma(e, c.number(kLn2Low), c.mul(square, c.number(-0.5F)));
  tail = c.fma(p, c.mul(square, f), tail);
  return c.fma(e, c.number(kLn2High), c.add(f, tail));
}

}  // namespace

Value with_sign_of(VectorCode& c, Value magnitude, Value x) {
  return c.or_and(magnitude, x, c.bits(0x80000000));
}

Value polynomial(VectorCode& c, const std::vector<double>& coefficients, Value z) {
  Value p = c.number(static_cast<float>(coefficients.back()));
  for (size_t k = coefficients.size() - 1; k-- > 0;)
    p = c.fma(p, z, c.number(static_cast<float>(coefficients[k])));
  return p;
}

Value exp(VectorCode& c, Value x) {
  return exp_by(c, x, kLn2, cubic_expm1, quartic_expm1);
}

Value short_exp(VectorCode& c, Value x) {
  return exp_by(c, x, kShortLn2, square_expm1, cubic_expm1);
}

Value log(VectorCode& c, Value x) {
  if (c.isa() == Isa::kAvx512) {
    Value m = c.mantissa(x);
    Value e = c.sub(c.exponent(x), c.exponent(m));
    return log_of(c, e, m);
  }
  Parts parts = take_apart(c, x);
  return with_edges(c, x, log_of(c, parts.exponent, parts.mantissa));
}

Value tanh(VectorCode& c, Value x) {
  static const OddPieces kSixteen = odd_pieces(std::tanh, 16, 0.5, 9.125, 7);
  static const OddPieces kEight = odd_pieces(std::tanh, 8, 1.0, 9.125, 9);
  return odd_function(c, x, c.isa() == Isa::kAvx512 ? kSixteen : kEight);
}

Value erf(VectorCode& c, Value x) {
  static const OddPieces kSixteen = odd_pieces(std::erf, 16, 0.25, 4.0, 6);
  static const OddPieces kEight = odd_pieces(std::erf, 8, 0.5, 4.0, 6);
  return odd_function(c, x, c.isa() == Isa::kAvx512 ? kSixteen : kEight);
}

Value short_erf(VectorCode& c, Value x) {
  static const OddPieces kSixteen = odd_pieces(std::erf, 16, 0.25, 4.0, 4);
  static const OddPieces kEight = odd_pieces(std::erf, 8, 0.5, 4.0, 4);
  return odd_function(c, x, c.isa() == Isa::kAvx512 ? kSixteen : kEight);
}

}  // namespace tenon::onednn::kernels::code

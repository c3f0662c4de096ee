// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan: x less a multiple of pi/2 as the sum of two numbers, then a polynomial of
// either kind (J.-M. Muller, Elementary Functions, 3rd ed., chapter 11).

#include <cmath>

#include "approximation.h"
#include "elementary.h"
#include "rare.h"

namespace tenon::onednn::kernels::code {

namespace {

// pi/2 in three parts of f32; a multiple of the first is taken off without rounding.
constexpr double kHalfPi = 1.5707963267948966;
constexpr double kHalfPiRest = 6.123233995736766e-17;
constexpr auto kFirst = static_cast<float>(kHalfPi);
constexpr auto kSecond = static_cast<float>(kHalfPi - double{kFirst});
constexpr auto kThird =
    static_cast<float>(kHalfPi - double{kFirst} - double{kSecond} + kHalfPiRest);
// Added to x, rounds it to a whole number and leaves that in the low bits.
constexpr float kRounds = 12582912.0F;  // 1.5 * 2^23
// What z = r^2 reaches, and a little more.
constexpr double kMostSquare = 0.63;
constexpr double kTiny = 1e-3;  // below it the functions are their series, without cancellation

// (sin(r) / r - 1) / z
double sin_rest(double z) {
  if (z < kTiny) return -1.0 / 6 + z / 120 - z * z / 5040;
  const double r = std::sqrt(z);
  return (std::sin(r) / r - 1) / z;
}
// (cos(r) - 1 + z/2) / z^2
double cos_rest(double z) {
  if (z < kTiny) return 1.0 / 24 - z / 720 + z * z / 40320;
  return (std::cos(std::sqrt(z)) - 1 + z / 2) / (z * z);
}

// x = turns pi/2 + r; the low bits of `turns` count them.
struct Angle {
  Value turns, sin, cos;  // of r
};

Angle reduce(VectorCode& c, Value x) {
  static const std::vector<double> kSin = interpolate(sin_rest, 0, kMostSquare, 3);
  static const std::vector<double> kCos = interpolate(cos_rest, 0, kMostSquare, 3);
  Value turns = c.fma(x, c.number(static_cast<float>(1 / kHalfPi)), c.number(kRounds));
  Value n = c.sub(turns, c.number(kRounds));
  Value exact = c.fnma(n, c.number(kFirst), x);
  // What is left may be far less than n times the second part: that is taken off with all digits
  // (O. Moller's and D. E. Knuth's sum of two).
  Value second = c.mul(n, c.number(kSecond));
  Value r = c.sub(exact, second);
  Value moved = c.sub(r, exact);
  Value low = c.sub(c.sub(exact, c.sub(r, moved)), c.add(second, moved));
  low = c.add(low, c.fnma(n, c.number(kSecond), second));
  low = c.fnma(n, c.number(kThird), low);
  Value z = c.mul(r, r);
  Value sine = c.add(r, c.fma(c.mul(r, z), polynomial(c, kSin, z), low));
  // 1 - z/2, with the digits that it loses.
  Value half = c.mul(z, c.number(0.5F));
  Value most = c.sub(c.number(1.0F), half);
  Value lost = c.sub(c.sub(c.number(1.0F), most), half);
  Value rest = c.fma(c.mul(z, z), polynomial(c, kCos, z), c.fnma(r, low, lost));
  return {turns, sine, c.add(most, rest)};
}

// `odd` where the number of turns is odd.
Value by_parity(VectorCode& c, Value turns, Value odd, Value even) {
  Value parity = c.from_whole(c.bit_and(turns, c.bits(1)));
  return c.blend(Compare::kNe, parity, c.number(0.0F), odd, even);
}

// x itself where it is 0: its sign stays.
Value with_zero(VectorCode& c, Value x, Value y) {
  return c.blend(Compare::kEq, x, c.number(0.0F), x, y);
}

Value within_limit(VectorCode& c, Value x, Value y, Rare function) {
  return c.rare(c.absolute(x), c.number(kTrigLimit), y, function, x);
}

// Of `turns` more: each second pair of them changes the sign.
Value quarter_turns(VectorCode& c, Value turns, const Angle& angle) {
  Value y = by_parity(c, turns, angle.cos, angle.sin);
  return c.bit_xor(y, c.shift_left(c.bit_and(turns, c.bits(2)), 30));
}

}  // namespace

Value sin(VectorCode& c, Value x) {
  const Angle angle = reduce(c, x);
  return within_limit(c, x, with_zero(c, x, quarter_turns(c, angle.turns, angle)), Rare::kSin);
}

Value cos(VectorCode& c, Value x) {
  const Angle angle = reduce(c, x);
  return within_limit(c, x, quarter_turns(c, c.add_bits(angle.turns, c.bits(1)), angle),
                      Rare::kCos);
}

Value tan(VectorCode& c, Value x) {
  const Angle angle = reduce(c, x);
  Value quotient = c.div(by_parity(c, angle.turns, angle.cos, angle.sin),
                         by_parity(c, angle.turns, angle.sin, angle.cos));
  Value sign = c.shift_left(angle.turns, 31);
  return within_limit(c, x, with_zero(c, x, c.bit_xor(quotient, sign)), Rare::kTan);
}

}  // namespace tenon::onednn::kernels::code

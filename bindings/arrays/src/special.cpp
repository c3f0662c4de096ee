// SPDX-License-Identifier: Apache-2.0
// Special functions as expressions, computed in float64 and rounded to the type of the argument.
// Their slopes are those of the expressions, but for erfc and erfinv. What a condition does not
// choose is computed of a harmless number, so that it adds no NaN to a slope.
#include <cmath>
#include <numbers>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using std::numbers::pi;

Value log(const Value& x) {
  return node("Log", {x});
}
Value in_double(const Call& c) {
  return cast(c[0], TN_F64);
}

// x is below 1/2, where both functions follow from their value at 1 - x.
struct Reflected {
  Value is;
  Value x;         // 1/2 and above
  Value fraction;  // the distance to the nearest whole number: sin(pi x) of it has no error
};
Reflected reflected(const Value& x) {
  Value is = lt(x, 0.5);
  Value fraction = where(is, x - node("Round", {x}), 0.5);
  return {is, where(is, Operand(1) - x, x), fraction};
}

// From 1/2 to kNear. Around its zeros at 1 and 2, where terms of Lanczos cancel: the series around
// 2 (Abramowitz and Stegun, 6.1.33), and that of z + 1 less log(z).
constexpr double kNear = 2.5;
Value lgamma_near(const Value& z) {
  constexpr int kTerms = 35;
  const Value is_low = lt(z, 1.5), t = where(is_low, z - 1, z - 2);
  Value sum = t * 0;
  for (int k = kTerms; k >= 2; --k) {
    const double term = (std::riemann_zeta(static_cast<double>(k)) - 1) / k;
    sum = (sum + (k % 2 == 0 ? term : -term)) * t;
  }
  const Value made = (sum + (1 - std::numbers::egamma)) * t;
  return where(is_low, made - log(z), made);
}
// C. Lanczos, A precision approximation of the gamma function (1964), with g = 7 and nine terms.
Values lgamma(Call& c) {
  constexpr double kShift = 7, kFirst = 0.99999999999980993;
  constexpr double kTerms[] = {676.5203681218851,     -1259.1392167224028,  771.32342877765313,
                               -176.61502916214059,   12.507343278686905,   -0.13857109526572012,
                               9.9843695780195716e-6, 1.5056327351493116e-7};
  Value x = in_double(c), infinite = node("IsInf", {x});
  auto [is_below, z, fraction] = reflected(where(infinite, 1, x));
  Value sum = z * 0 + kFirst;
  for (int i = 0; i < 8; ++i)
    sum = sum + Operand(kTerms[i]) / (z + i);
  Value top = z + (kShift - 0.5);
  Value is_near = lt(z, kNear), near = lgamma_near(where(is_near, z, 1));
  Value above =
      where(is_near, near, (z - 0.5) * log(top) - top + log(sum) + 0.5 * std::log(2 * pi));
  Value sine = node("Abs", {node("Sin", {fraction * pi})});
  Value made = where(is_below, log(Operand(pi) / sine) - above, above);
  return cast(where(infinite, HUGE_VAL, made), c[0].dtype);
}

// By the recurrence ten steps up, where the asymptotic series has all digits.
Values digamma(Call& c) {
  constexpr int kSteps = 10;
  constexpr double kSeries[] = {-1. / 12,  1. / 120,     -1. / 252, 1. / 240,
                                -1. / 132, 691. / 32760, -1. / 12};
  Value x = in_double(c);
  auto [is_below, z, distance] = reflected(x);
  Value is_pole = eq(distance, 0), fraction = where(is_pole, 0.5, distance);
  Value far = z + kSteps, inverse = node("Reciprocal", {far * far});
  Value series = inverse * kSeries[6];
  for (int i = 5; i >= 0; --i)
    series = (series + kSeries[i]) * inverse;
  Value above = log(far) - Operand(0.5) / far + series;
  for (int i = 0; i < kSteps; ++i)
    above = above - node("Reciprocal", {z + i});
  Value below = above - Operand(pi) / node("Tan", {fraction * pi});
  // The sides of 0 are those of its sign; those of the other poles have none.
  Value pole = where(eq(x, 0), -node("Reciprocal", {x}), x * std::nan(""));
  return cast(where(is_pole, pole, where(is_below, below, above)), c[0].dtype);
}

// p[0] x^n + p[1] x^(n-1) + ..
template <size_t n>
Value polynomial(const Value& x, const double (&p)[n]) {
  Value made = x * p[0] + p[1];
  for (size_t i = 2; i < n; ++i)
    made = made * x + p[i];
  return made;
}

// sqrt(pi) exp(x^2) erfc(x) from x = kTail on, where 1 - erf(x) loses digits: W. J. Cody, Rational
// Chebyshev approximations for the error function (1969), up to 4 and behind it.
constexpr double kTail = 0.5;
// Behind it erfc is 0 in float64.
constexpr double kEnd = 30;
Value scaled_tail(const Value& x) {
  constexpr double kMiddle = 4;
  constexpr double kOver[] = {
      2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594,
      6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
      1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
  constexpr double kUnder[] = {1,
                               1.57449261107098347e1,
                               1.17693950891312499e2,
                               5.37181101862009858e2,
                               1.62138957456669019e3,
                               3.29079923573345963e3,
                               4.36261909014324716e3,
                               3.43936767414372164e3,
                               1.23033935480374942e3};
  constexpr double kFarOver[] = {1.63153871373020978e-2, 3.05326634961232344e-1,
                                 3.60344899949804439e-1, 1.25781726111229246e-1,
                                 1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double kFarUnder[] = {1,
                                  2.56852019228982242,
                                  1.87295284992346047,
                                  5.27905102951428412e-1,
                                  6.05183413124413191e-2,
                                  2.33520497626869185e-3};
  const double root = std::sqrt(pi);
  Value is_far = lt(kMiddle, x), middle = where(is_far, kMiddle, x);
  Value near = polynomial(middle, kOver) / polynomial(middle, kUnder) * root;
  Value far = where(is_far, x, kMiddle), square = node("Reciprocal", {far * far});
  Value rest = square * polynomial(square, kFarOver) / polynomial(square, kFarUnder);
  return where(is_far, (Operand(1) - rest * root) / far, near);
}
// exp(-x^2), whose x^2 is taken apart so that no digit of it is lost.
Value bell(const Value& x) {
  const Value high = node("Floor", {x * 16}) * (1. / 16);
  return node("Exp", {-(high * high)}) * node("Exp", {(high - x) * (high + x)});
}

// All slopes are those of -erf, whose own number is taken away again.
Values erfc(Call& c) {
  Value x = in_double(c), is_near = lt(x, kTail), is_zero = lt(kEnd, x);
  Value far = where(is_zero, kEnd, where(is_near, kTail, x));
  Value tail = bell(far) * scaled_tail(far) / std::sqrt(pi);
  Value erf = node("Erf", {where(is_zero, kEnd, x)});
  Value made = stopped(where(is_near, Operand(1) - erf, tail));
  return cast(made - (erf - stopped(erf)), c[0].dtype);
}

// One of Halley's steps towards erf(x) = y, from erf(x) - y and in units of erf's slope.
Value halley_step(const Value& x, const Value& away) {
  return x - away / (x * away + 1);
}
Value slope_of_erf(const Value& x) {
  return node("Exp", {-(x * x)}) * (2 / std::sqrt(pi));
}

// S. Winitzki, A handy approximation for the error function and its inverse (2008), then Halley's
// steps. What they find counts as a number: two more, from where erf is right, move nothing and
// have the slopes of all orders that anyone asks for.
Values erfinv(Call& c) {
  constexpr double kA = 0.147;
  Value y = in_double(c), inside = lt(node("Abs", {y}), 1);
  // By a condition and not by Abs, whose slope at 0 is none.
  Value harmless = where(inside, y, 0), is_below = lt(y, 0);
  Value safe = where(is_below, -harmless, harmless), rest = Operand(1) - safe;
  Value level = log(rest * (safe + 1));
  Value half = level * 0.5 + 2 / (pi * kA);
  Value root = node("Sqrt", {half * half - level / kA}) - half;
  Value x = node("Sqrt", {node("Max", {root, 0})});
  for (int i = 0; i < 3; ++i) {
    Value slope = slope_of_erf(x), is_near = lt(x, kTail), far = where(is_near, kTail, x);
    Value in_tail = rest / slope - scaled_tail(far) * 0.5;
    x = halley_step(x, where(is_near, (node("Erf", {x}) - safe) / slope, in_tail));
  }
  x = stopped(x);
  Value known = stopped(node("Erf", {x})), moved = safe - stopped(safe);
  for (int i = 0; i < 2; ++i)
    x = halley_step(x, (node("Erf", {x}) - known - moved) / slope_of_erf(x));
  // At 1 and -1 the slope is infinite, too, and beyond them none.
  Value outer = where(inside, 0, y), is_end = eq(node("Abs", {outer}), 1);
  Value edge = outer * where(is_end, c.scalar(HUGE_VAL, TN_F64), std::nan(""));
  return cast(where(inside, where(is_below, -x, x), edge), c[0].dtype);
}

const Function kRows[] = {
    {"digamma(x: float)", "", "The slope of lgamma.", "", digamma},
    {"erfc(x: float)", "", "1 - erf(x), without a difference that cancels.", "", erfc},
    {"erfinv(x: float)", "",
     "The inverse of erf: infinite at -1 and 1, NaN beyond them. sqrt(2)*erfinv(2*p - 1) is the "
     "quantile p of the normal distribution.",
     "", erfinv},
    {"lgamma(x: float)", "", "The logarithm of the size of the gamma function.", "", lgamma},
};

}  // namespace

const std::span<const Function> kSpecial = kRows;

}  // namespace tenon::arrays

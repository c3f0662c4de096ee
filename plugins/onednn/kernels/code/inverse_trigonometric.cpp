// SPDX-License-Identifier: Apache-2.0
// atan, asin and acos: the argument reduced to where a short polynomial in its square is enough
// (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, chapters 10 and 11).

#include <cmath>

#include "approximation.h"
#include "elementary.h"

namespace tenon::onednn::kernels::code {

namespace {

constexpr double kPi = 3.141592653589793;
constexpr double kTiny = 1e-4;  // below it the functions are their series, without cancellation
constexpr double kEighth = 0.4142135623730951;  // tan(pi/8)

// (atan(t) / t - 1) / z, z = t^2
double atan_rest(double z) {
  if (z < kTiny) return -1.0 / 3 + z / 5 - z * z / 7;
  const double t = std::sqrt(z);
  return (std::atan(t) / t - 1) / z;
}
// (asin(t) / t - 1) / z
double asin_rest(double z) {
  if (z < kTiny) return 1.0 / 6 + z * 3 / 40 + z * z * 15 / 336;
  const double t = std::sqrt(z);
  return (std::asin(t) / t - 1) / z;
}

// A constant beyond f32: `high` and what that leaves.
struct Split {
  float high, low;
};
constexpr Split split(double x) {
  return {static_cast<float>(x), static_cast<float>(x - double{static_cast<float>(x)})};
}

// asin(t) - t for z = t^2 <= 1/4.
Value asin_tail(VectorCode& c, Value t, Value z) {
  static const std::vector<double> kRest = interpolate(asin_rest, 0, 0.25, 6);
  return c.mul(c.mul(t, z), polynomial(c, kRest, z));
}

// Beyond 1/2 asin(a) is pi/2 - 2 asin(sqrt((1 - a) / 2)); of a beyond 1 the root is NaN.
struct Reduced {
  Value a, half, t, tail;
};
Reduced reduce_sine(VectorCode& c, Value x) {
  const Value half = c.number(0.5F);
  const Value a = c.absolute(x);
  const Value far = c.mul(c.sub(c.number(1.0F), a), half);
  const Value z = c.blend(Compare::kGt, a, half, far, c.mul(a, a));
  const Value t = c.blend(Compare::kGt, a, half, c.sqrt(far), a);
  return {a, half, t, asin_tail(c, t, z)};
}

}  // namespace

Value atan(VectorCode& c, Value x) {
  static const std::vector<double> kRest = interpolate(atan_rest, 0, kEighth * kEighth, 6);
  constexpr Split kQuarter = split(kPi / 4), kHalf = split(kPi / 2);
  const Value zero = c.number(0.0F), one = c.number(1.0F);
  const Value a = c.absolute(x);
  // tan(atan(a) - pi/4) and tan(atan(a) - pi/2), where a is beyond tan(pi/8) and 1/tan(pi/8).
  const Value middle = c.number(static_cast<float>(kEighth));
  const Value far = c.number(static_cast<float>(1 / kEighth));
  auto by_part = [&](Value near, Value between, Value beyond) {
    return c.blend(Compare::kGt, a, far, beyond, c.blend(Compare::kGt, a, middle, between, near));
  };
  const Value t = c.div(by_part(a, c.sub(a, one), c.number(-1.0F)), by_part(one, c.add(a, one), a));
  const Value z = c.mul(t, t);
  const Value tail = c.mul(c.mul(t, z), polynomial(c, kRest, z));
  const Value low = by_part(zero, c.number(kQuarter.low), c.number(kHalf.low));
  const Value rest = c.add(t, c.add(tail, low));
  const Value angle = c.add(by_part(zero, c.number(kQuarter.high), c.number(kHalf.high)), rest);
  return with_sign_of(c, angle, x);
}

Value asin(VectorCode& c, Value x) {
  constexpr Split kHalf = split(kPi / 2);
  const Reduced r = reduce_sine(c, x);
  const Value twice = c.number(-2.0F);
  const Value low = c.fma(r.tail, twice, c.number(kHalf.low));
  const Value far = c.add(c.number(kHalf.high), c.fma(r.t, twice, low));
  return with_sign_of(c, c.blend(Compare::kGt, r.a, r.half, far, c.add(r.t, r.tail)), x);
}

Value acos(VectorCode& c, Value x) {
  constexpr Split kHalf = split(kPi / 2), kWhole = split(kPi);
  const Reduced r = reduce_sine(c, x);
  const Value zero = c.number(0.0F);
  // pi/2 - asin(x), asin(x) with the sign of x.
  const Value t = with_sign_of(c, r.t, x), tail = with_sign_of(c, r.tail, x);
  const Value near = c.sub(c.number(kHalf.high), c.add(t, c.sub(tail, c.number(kHalf.low))));
  const Value twice = c.add(c.add(r.t, r.t), c.add(r.tail, r.tail));
  const Value left = c.sub(c.number(kWhole.high), c.sub(twice, c.number(kWhole.low)));
  const Value far = c.blend(Compare::kLt, x, zero, left, twice);
  return c.blend(Compare::kGt, r.a, r.half, far, near);
}

}  // namespace tenon::onednn::kernels::code

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values and slopes of pointwise operators in closed form, in double. At a kink the slope is the
// mean of those on both sides, or what the operator says of itself, which is PyTorch's (Relu: 0).

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace tenon::test {

using Function = double (*)(double x, double y);

struct Slopes {
  const char* call;  // "Softplus(%x)"; also %y, %one, %low (-1), %flag (true)
  Function value, dx, dy = nullptr;
  std::vector<double> at = {};  // beside what all are looked at
};

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();  // a slope that is nowhere

inline double step(double x) {  // the slope of max(x, 0): the mean of both sides at 0
  return x > 0 ? 1 : x == 0 ? 0.5 : 0;
}
inline double sign_of(double x) {
  return (x > 0) - (x < 0);
}
inline double larger(double x, double y) {  // the slope of max(x, y) by x
  return x > y ? 1 : x == y ? 0.5 : 0;
}
inline double within(double x, double low, double high) {  // the slope of clip
  return step(x - low) * step(high - x);
}
inline double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double logistic_slope(double x) {
  double e = std::exp(-std::fabs(x));
  return e / ((1 + e) * (1 + e));
}
inline double bell(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
inline double swish_slope(double x) {
  return std::isinf(x) ? (x > 0) : logistic(x) + x * logistic_slope(x);
}
inline double gelu_slope(double x) {
  return std::isinf(x) ? (x > 0) : 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * bell(x);
}
inline double tanh_gelu_slope(double x) {
  if (std::fabs(x) > 16) return x > 0;
  double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}
inline double softplus(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
inline double mish_slope(double x) {
  if (std::isinf(x)) return x > 0;
  double t = std::tanh(softplus(x));
  return t + x * (1 - t * t) * logistic(x);
}
inline double python_mod(double x, double y) {
  double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
inline double power_by_base(double x, double y) {
  return y == 0 ? 0 : std::isinf(y) ? kNoNumber : y * std::pow(x, y - 1);
}
inline double power_by_exponent(double x, double y) {
  if (x == 0 && y >= 0) return 0;
  return std::isinf(x) || std::isinf(y) ? kNoNumber : std::pow(x, y) * std::log(x);
}

// clang-format off
#define F []([[maybe_unused]] double x, [[maybe_unused]] double y) -> double
inline const std::vector<Slopes> kSlopes = {
  {"Abs(%x)", F { return std::fabs(x); }, F { return sign_of(x); }},
  {"Acos(%x)", F { return std::acos(x); }, F { return -1 / std::sqrt((1 - x) * (1 + x)); }},
  {"Acosh(%x)", F { return std::acosh(x); },
   F { return 1 / (std::sqrt(x - 1) * std::sqrt(x + 1)); }},
  {"Asin(%x)", F { return std::asin(x); }, F { return 1 / std::sqrt((1 - x) * (1 + x)); }},
  {"Asinh(%x)", F { return std::asinh(x); }, F { return 1 / std::hypot(x, 1); }},
  {"Atan(%x)", F { return std::atan(x); }, F { return 1 / (1 + x * x); }},
  {"Atanh(%x)", F { return std::atanh(x); }, F { return 1 / ((1 - x) * (1 + x)); }},
  {"Ceil(%x)", F { return std::ceil(x); }, F { return 0; }},
  {"Celu(%x)", F { return x > 0 ? x : std::expm1(x); }, F { return x > 0 ? 1 : std::exp(x); }},
  {"Clip(%x)", F { return x; }, F { return 1; }},
  {"Clip(%x, %low, %one)", F { return std::fmin(std::fmax(x, -1), 1); },
   F { return x > -1 && x < 1; }},
  {"Cos(%x)", F { return std::cos(x); }, F { return -std::sin(x); }},
  {"Cosh(%x)", F { return std::cosh(x); }, F { return std::sinh(x); }},
  {"Elu(%x)", F { return x > 0 ? x : std::expm1(x); }, F { return x > 0 ? 1 : std::exp(x); }},
  {"Erf(%x)", F { return std::erf(x); },
   F { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }},
  {"Exp(%x)", F { return std::exp(x); }, F { return std::exp(x); }},
  {"Floor(%x)", F { return std::floor(x); }, F { return 0; }},
  {"Gelu(%x)", F { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); },
   F { return gelu_slope(x); }},
  {"Gelu(%x) {approximate = \"tanh\"}",
   F {
     double u = std::fmax(-16, std::fmin(16, x));
     return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)));
   },
   F { return tanh_gelu_slope(x); }, nullptr, {40, -40, 300, -300}},
  {"HardSigmoid(%x)", F { return std::fmax(0, std::fmin(1, 0.2 * x + 0.5)); },
   F { return std::fabs(x) == 2.5 ? kNoNumber : 0.2 * within(x, -2.5, 2.5); }},
  {"HardSigmoid(%x) {alpha = 0.25}", F { return std::fmax(0, std::fmin(1, 0.25 * x + 0.5)); },
   F { return x > -2 && x < 2 ? 0.25 : 0; }, nullptr, {2, -2}},
  {"HardSwish(%x)", F { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); },
   F {
     return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
   }},
  {"LeakyRelu(%x)", F { return x < 0 ? 0.01 * x : x; }, F { return x > 0 ? 1 : 0.01; }},
  {"Log(%x)", F { return std::log(x); }, F { return 1 / x; }},
  {"Mish(%x)", F { return x * std::tanh(softplus(x)); }, F { return mish_slope(x); }},
  {"Neg(%x)", F { return -x; }, F { return -1; }},
  {"Reciprocal(%x)", F { return 1 / x; }, F { return -1 / x / x; }},
  {"Relu(%x)", F { return std::fmax(x, 0); }, F { return x > 0; }},
  {"Round(%x)", F { return std::nearbyint(x); }, F { return 0; }, nullptr, {1.5, 2.5}},
  {"Selu(%x)", F { return 1.0507010221481323 * (x > 0 ? x : 1.6732631921768188 * std::expm1(x)); },
   F { return 1.0507010221481323 * (x > 0 ? 1 : 1.6732631921768188 * std::exp(x)); }},
  {"Shrink(%x)", F { return std::fabs(x) > 0.5 ? x : 0; }, F { return std::fabs(x) > 0.5; }},
  {"Sigmoid(%x)", F { return logistic(x); }, F { return logistic_slope(x); }},
  {"Sign(%x)", F { return sign_of(x); }, F { return 0; }},
  {"Sin(%x)", F { return std::sin(x); }, F { return std::cos(x); }},
  {"Sinh(%x)", F { return std::sinh(x); }, F { return std::cosh(x); }},
  {"Softplus(%x)", F { return softplus(x); }, F { return logistic(x); }},
  {"Softsign(%x)", F { return x / (1 + std::fabs(x)); },
   F { return 1 / (1 + std::fabs(x)) / (1 + std::fabs(x)); }},
  {"Sqrt(%x)", F { return std::sqrt(x); }, F { return 0.5 / std::sqrt(x); }},
  {"Swish(%x)", F { return x * logistic(x); }, F { return swish_slope(x); }},
  {"Tan(%x)", F { return std::tan(x); }, F { return 1 + std::tan(x) * std::tan(x); }},
  {"Tanh(%x)", F { return std::tanh(x); }, F { return 1 / (std::cosh(x) * std::cosh(x)); }},
  {"ThresholdedRelu(%x)", F { return x > 1 ? x : 0; }, F { return x > 1; }},
  {"Add(%x, %y)", F { return x + y; }, F { return 1; }, F { return 1; }},
  {"Div(%x, %y)", F { return x / y; }, F { return 1 / y; }, F { return -(x / y) / y; }},
  {"Max(%x, %y)", F { return std::fmax(x, y); }, F { return larger(x, y); },
   F { return larger(y, x); }},
  {"Max(%x, %one)", F { return std::fmax(x, 1); }, F { return step(x - 1); }},
  {"Mean(%x, %y)", F { return (x + y) / 2; }, F { return 0.5; }, F { return 0.5; }},
  {"Min(%x, %y)", F { return std::fmin(x, y); }, F { return larger(y, x); },
   F { return larger(x, y); }},
  {"Mod(%x, %y)", python_mod, F { return 1; },
   F { return std::isinf(y) ? kNoNumber : -std::nearbyint((x - python_mod(x, y)) / y); }},
  {"Mod(%x, %y) {fmod = 1}", F { return std::fmod(x, y); }, F { return 1; },
   F { return std::isinf(y) ? kNoNumber : -std::nearbyint((x - std::fmod(x, y)) / y); }},
  {"Mul(%x, %y)", F { return x * y; }, F { return y; }, F { return x; }},
  {"Pow(%x, %y)", F { return std::pow(x, y); }, power_by_base, power_by_exponent},
  {"PRelu(%x, %y)", F { return x < 0 ? y * x : x; }, F { return x > 0 ? 1 : y; },
   F { return x < 0 ? x : 0; }},
  {"Sub(%x, %y)", F { return x - y; }, F { return 1; }, F { return -1; }},
  {"Sum(%x, %y)", F { return x + y; }, F { return 1; }, F { return 1; }},
  {"SwiGLU(%x, %y)", F { return x * logistic(x) * y; },
   F { return std::isinf(y) ? kNoNumber : y * swish_slope(x); }, F { return x * logistic(x); }},
  {"Where(%flag, %x, %y)", F { return x; }, F { return 1; }, F { return 0; }},
};

// Those of intrinsic_rows.cpp.
inline const std::vector<Slopes> kIntrinsicSlopes = {
  {"slope:neg(%x)", F { return -x; }, F { return -1; }},
  {"slope:abs(%x)", F { return std::fabs(x); }, F { return sign_of(x); }},
  {"slope:sign(%x)", F { return sign_of(x); }, F { return 0; }},
  {"slope:exp(%x)", F { return std::exp(x); }, F { return std::exp(x); }},
  {"slope:expm1(%x)", F { return std::expm1(x); }, F { return std::exp(x); }},
  {"slope:log(%x)", F { return std::log(x); }, F { return 1 / x; }},
  {"slope:log1p(%x)", F { return std::log1p(x); }, F { return 1 / (1 + x); }},
  {"slope:sqrt(%x)", F { return std::sqrt(x); }, F { return 0.5 / std::sqrt(x); }},
  {"slope:rsqrt(%x)", F { return 1 / std::sqrt(x); },
   F { return std::signbit(x) ? kNoNumber : -0.5 / (x * std::sqrt(x)); }},
  {"slope:reciprocal(%x)", F { return 1 / x; }, F { return -1 / x / x; }},
  {"slope:erf(%x)", F { return std::erf(x); },
   F { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }},
  {"slope:tanh(%x)", F { return std::tanh(x); }, F { return 1 / (std::cosh(x) * std::cosh(x)); }},
  {"slope:sigmoid(%x)", F { return logistic(x); }, F { return logistic_slope(x); }},
  {"slope:sin(%x)", F { return std::sin(x); }, F { return std::cos(x); }},
  {"slope:cos(%x)", F { return std::cos(x); }, F { return -std::sin(x); }},
  {"slope:tan(%x)", F { return std::tan(x); }, F { return 1 + std::tan(x) * std::tan(x); }},
  {"slope:asin(%x)", F { return std::asin(x); }, F { return 1 / std::sqrt((1 - x) * (1 + x)); }},
  {"slope:acos(%x)", F { return std::acos(x); }, F { return -1 / std::sqrt((1 - x) * (1 + x)); }},
  {"slope:atan(%x)", F { return std::atan(x); }, F { return 1 / (1 + x * x); }},
  {"slope:sinh(%x)", F { return std::sinh(x); }, F { return std::cosh(x); }},
  {"slope:cosh(%x)", F { return std::cosh(x); }, F { return std::sinh(x); }},
  {"slope:asinh(%x)", F { return std::asinh(x); }, F { return 1 / std::hypot(x, 1); }},
  {"slope:acosh(%x)", F { return std::acosh(x); },
   F { return 1 / (std::sqrt(x - 1) * std::sqrt(x + 1)); }},
  {"slope:atanh(%x)", F { return std::atanh(x); }, F { return 1 / ((1 - x) * (1 + x)); }},
  {"slope:floor(%x)", F { return std::floor(x); }, F { return 0; }},
  {"slope:ceil(%x)", F { return std::ceil(x); }, F { return 0; }},
  {"slope:round(%x)", F { return std::nearbyint(x); }, F { return 0; }},
  {"slope:trunc(%x)", F { return std::trunc(x); }, F { return 0; }},
  {"slope:add(%x, %y)", F { return x + y; }, F { return 1; }, F { return 1; }},
  {"slope:sub(%x, %y)", F { return x - y; }, F { return 1; }, F { return -1; }},
  {"slope:mul(%x, %y)", F { return x * y; }, F { return y; }, F { return x; }},
  {"slope:div(%x, %y)", F { return x / y; }, F { return 1 / y; }, F { return -(x / y) / y; }},
  {"slope:pow(%x, %y)", F { return std::pow(x, y); }, power_by_base, power_by_exponent},
  {"slope:min(%x, %y)", F { return std::fmin(x, y); }, F { return larger(y, x); },
   F { return larger(x, y); }},
  {"slope:max(%x, %y)", F { return std::fmax(x, y); }, F { return larger(x, y); },
   F { return larger(y, x); }},
  {"slope:mod(%x, %y)", python_mod, F { return 1; },
   F { return std::isinf(y) ? kNoNumber : -std::nearbyint((x - python_mod(x, y)) / y); }},
  {"slope:fmod(%x, %y)", F { return std::fmod(x, y); }, F { return 1; },
   F { return std::isinf(y) ? kNoNumber : -std::nearbyint((x - std::fmod(x, y)) / y); }},
  {"slope:atan2(%x, %y)", F { return std::atan2(x, y); },
   F {
     double m = std::fmax(std::fabs(x), std::fabs(y));
     return std::isinf(m) ? kNoNumber : y / m / (m * (x / m * (x / m) + y / m * (y / m)));
   },
   F {
     double m = std::fmax(std::fabs(x), std::fabs(y));
     return std::isinf(m) ? kNoNumber : -x / m / (m * (x / m * (x / m) + y / m * (y / m)));
   }},
  {"slope:select(%x, %y)", F { return x > y ? x : 2 * y; }, F { return x > y; },
   F { return x > y ? 0 : 2; }},
  {"slope:softplus(%x)", F { return softplus(x); }, F { return logistic(x); }},
  {"slope:softplus_by_max(%x)", F { return softplus(x); }, F { return logistic(x); }},
  {"slope:softplus_by_min(%x)",
   F { return x - std::fmin(x, 0) + std::log1p(std::exp(-std::fabs(x))); },
   F { return logistic(x); }},
  {"slope:logaddexp(%x, %y)",
   F { return std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y))); },
   F { return logistic(x - y); }, F { return logistic(y - x); }},
  {"slope:identity(%x)", F { return x; }, F { return 1; }},
  {"slope:half_of_both(%x)", F { return 0.5 * (x + std::fabs(x)) - std::fmax(x, 0) + x; },
   F { return 1; }},
  {"slope:clipped_and_rest(%x)",
   F { return std::fmin(std::fmax(x, -1), 1) + std::fmax(x - 1, 0) + std::fmin(x + 1, 0); },
   F { return 1; }},
  {"slope:square_by_abs(%x)", F { return x * x; }, F { return 2 * x; }},
  {"slope:square_on_one_side(%x)", F { return std::fmax(x, 0) * std::fmax(x, 0); },
   F { return 2 * std::fmax(x, 0); }},
  {"slope:exp_of_abs(%x)", F { return std::exp(std::fabs(x)); },
   F { return sign_of(x) * std::exp(std::fabs(x)); }},
  {"slope:abs_of_limited(%x)", F { return std::fmax(x, -1) + 1; }, F { return step(x + 1); }},
  {"slope:mish(%x)", F { return x * std::tanh(softplus(x)); }, F { return mish_slope(x); }},
};
#undef F
// clang-format on

}  // namespace tenon::test

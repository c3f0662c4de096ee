// SPDX-License-Identifier: Apache-2.0
// "layers.truncated_normal": the normal distribution between two limits, by the inverse of its
// distribution function: each number takes one draw, so that number i is a function of i.
#include "draws.hpp"

namespace tenon::layers {
namespace {

double share_below(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// The x with share_below(x) = share, between low and high, by bisection to double precision.
double place_of(double share, double low, double high) {
  for (int i = 0; i < 60; ++i) {
    double middle = 0.5 * (low + high);
    (share_below(middle) < share ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

class TruncatedNormal {
 public:
  static Result<TruncatedNormal> create(tn_ctx*, const Options& options) {
    TruncatedNormal out;
    out.deviation_ = options.number("deviation");
    out.low_ = options.number("low");
    out.high_ = options.number("high");
    if (out.low_ < out.high_) return out;
    return invalid(cat("option low: expected less than high, ", out.high_, ", got ", out.low_));
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    double from = share_below(low_), to = share_below(high_);
    draw_all(of, out, services.random->uniform,
             [&](double x) { return deviation_ * place_of(from + (to - from) * x, low_, high_); });
    return {};
  }

 private:
  double deviation_ = 1, low_ = -2, high_ = 2;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(truncated_normal,
                  tenon::layers::TruncatedNormal,
                  "layers.truncated_normal",
                  "the normal distribution without its tails",
                  R"({
  "properties": {
    "deviation": {"type": "number", "minimum": 0, "default": 0.02, "description": "of the distribution before its tails are cut"},
    "low": {"type": "number", "minimum": -8, "maximum": 8, "default": -2, "description": "the least, in deviations"},
    "high": {"type": "number", "minimum": -8, "maximum": 8, "default": 2, "description": "the most, in deviations"}}})")

// SPDX-License-Identifier: Apache-2.0
// "layers.xavier": mean 0 and variance 2 gain^2 / (fan_in + fan_out), between what keeps the
// variance of values and of gradients (Glorot and Bengio 2010, section 4.2.1).
#include "draws.hpp"

namespace tenon::layers {
namespace {

class Xavier {
 public:
  static Result<Xavier> create(tn_ctx*, const Options& options) {
    return Xavier{options.text("distribution") == "normal", options.number("gain")};
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    double both = static_cast<double>(of.fan_in) + static_cast<double>(of.fan_out);
    draw_spread(of, out, normal_, gain_ * std::sqrt(2 / std::max(1.0, both)));
    return {};
  }

 private:
  Xavier(bool normal, double gain) : normal_(normal), gain_(gain) {}
  bool normal_;
  double gain_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(xavier,
                  tenon::layers::Xavier,
                  "layers.xavier",
                  "keeps the variance of values and gradients (Xavier, Glorot)",
                  R"({
  "properties": {
    "distribution": {"type": "string", "enum": ["normal", "uniform"], "default": "uniform", "description": "of the numbers, with the same variance"},
    "gain": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "factor: 5/3 before tanh, 1.414 before ReLU"}}})")

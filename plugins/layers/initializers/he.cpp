// SPDX-License-Identifier: Apache-2.0
// "layers.he": mean 0 and variance 2 / ((1 + slope^2) fan), which a layer followed by a (leaky)
// ReLU hands on unchanged (He et al. 2015, "Delving deep into rectifiers", section 2.2).
#include "draws.hpp"

namespace tenon::layers {
namespace {

class He {
 public:
  static Result<He> create(tn_ctx*, const Options& options) {
    return He{options.text("distribution") == "normal", options.text("mode") == "fan_in",
              options.number("slope")};
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    double fan = at_least_one(of_inputs_ ? of.fan_in : of.fan_out);
    draw_spread(of, out, normal_, std::sqrt(2 / ((1 + slope_ * slope_) * fan)));
    return {};
  }

 private:
  He(bool normal, bool of_inputs, double slope)
      : normal_(normal), of_inputs_(of_inputs), slope_(slope) {}
  bool normal_, of_inputs_;
  double slope_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(he,
                  tenon::layers::He,
                  "layers.he",
                  "keeps the variance through a ReLU (He, Kaiming)",
                  R"({
  "properties": {
    "distribution": {"type": "string", "enum": ["normal", "uniform"], "default": "normal", "description": "of the numbers, with the same variance"},
    "mode": {"type": "string", "enum": ["fan_in", "fan_out"], "default": "fan_in", "description": "keeps the variance of values, or that of gradients"},
    "slope": {"type": "number", "minimum": 0, "default": 0, "description": "of the ReLU below 0"}}})")

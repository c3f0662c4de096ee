// SPDX-License-Identifier: Apache-2.0
// "layers.fan_uniform": uniform within gain / sqrt(fan_in), which is what PyTorch's Linear, Conv
// and LSTM begin with (there by way of kaiming_uniform with a = sqrt(5)).
#include "draws.hpp"

namespace tenon::layers {
namespace {

class FanUniform {
 public:
  static Result<FanUniform> create(tn_ctx*, const Options& options) {
    return FanUniform{options.number("gain")};
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    double bound = gain_ / std::sqrt(at_least_one(of.fan_in));
    draw_uniform(of, out, -bound, bound);
    return {};
  }

 private:
  explicit FanUniform(double gain) : gain_(gain) {}
  double gain_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(fan_uniform,
                  tenon::layers::FanUniform,
                  "layers.fan_uniform",
                  "uniform within gain / sqrt(fan_in): how PyTorch begins",
                  R"({
  "properties": {
    "gain": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "factor"}}})")

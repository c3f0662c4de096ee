// SPDX-License-Identifier: Apache-2.0
// "layers.normal": the normal distribution.
#include "draws.hpp"

namespace tenon::layers {
namespace {

class Normal {
 public:
  static Result<Normal> create(tn_ctx*, const Options& options) {
    return Normal{options.number("mean"), options.number("deviation")};
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    draw_normal(of, out, mean_, deviation_);
    return {};
  }

 private:
  Normal(double mean, double deviation) : mean_(mean), deviation_(deviation) {}
  double mean_, deviation_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(normal, tenon::layers::Normal, "layers.normal", "the normal distribution", R"({
  "properties": {
    "mean": {"type": "number", "default": 0, "description": "of the numbers"},
    "deviation": {"type": "number", "minimum": 0, "default": 1, "description": "from the mean"}}})")

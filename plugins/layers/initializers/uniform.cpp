// SPDX-License-Identifier: Apache-2.0
// "layers.uniform": each number of a range as likely as the others.
#include "draws.hpp"

namespace tenon::layers {
namespace {

class Uniform {
 public:
  static Result<Uniform> create(tn_ctx*, const Options& options) {
    Uniform out{options.number("low"), options.number("high")};
    if (out.low_ <= out.high_) return out;
    return invalid(cat("option low: expected at most high, ", out.high_, ", got ", out.low_));
  }
  Status fill(const tn_initial& of, std::span<float> out) const {
    draw_uniform(of, out, low_, high_);
    return {};
  }

 private:
  Uniform(double low, double high) : low_(low), high_(high) {}
  double low_, high_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(uniform, tenon::layers::Uniform, "layers.uniform", "uniform in a range", R"({
  "properties": {
    "low": {"type": "number", "default": -1, "description": "the least"},
    "high": {"type": "number", "default": 1, "description": "the limit"}}})")

// SPDX-License-Identifier: Apache-2.0
// "layers.uniform": each number of a range as likely as the others.
#include "draws.hpp"

namespace tenon::layers {
namespace {

struct Uniform : Drawn<draw_uniform> {
  using Drawn::Drawn;
  static Result<Uniform> create(tn_ctx*, const Options& options) {
    double low = options.number("low"), high = options.number("high");
    if (low <= high) return Uniform{low, high};
    return invalid(cat("option low: expected at most high, ", high, ", got ", low));
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(uniform, tenon::layers::Uniform, "layers.uniform", "uniform in a range", R"({
  "properties": {
    "low": {"type": "number", "default": -1, "description": "the least"},
    "high": {"type": "number", "default": 1, "description": "the limit"}}})")

// SPDX-License-Identifier: Apache-2.0
// "layers.normal": the normal distribution.
#include "draws.hpp"

namespace tenon::layers {
namespace {

struct Normal : Drawn<draw_normal> {
  using Drawn::Drawn;
  static Result<Normal> create(tn_ctx*, const Options& options) {
    return Normal{options.number("mean"), options.number("deviation")};
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(normal, tenon::layers::Normal, "layers.normal", "the normal distribution", R"({
  "properties": {
    "mean": {"type": "number", "default": 0, "description": "of the numbers"},
    "deviation": {"type": "number", "minimum": 0, "default": 1, "description": "from the mean"}}})")

// SPDX-License-Identifier: Apache-2.0
// "layers.flatten": [b, ...] to [b, n].
#include "layer.hpp"

namespace tenon::layers {
namespace {

struct Flatten {
  static Result<Flatten> create(tn_ctx*, const Options&) { return Flatten{}; }
  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_CHECK(one_input(use, 1).status());
    return use.outputs({use.op("Flatten", {use.input(0)}, {{"axis", 1}})});
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(flatten,
            tenon::layers::Flatten,
            "layers.flatten",
            "all axes but the first as one",
            R"({"properties": {}})")

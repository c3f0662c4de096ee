// SPDX-License-Identifier: Apache-2.0
// "layers.global_avg_pool": the mean of each channel, [b, c, ...] to [b, c].
#include "layer.hpp"

namespace tenon::layers {
namespace {

struct GlobalAvgPool {
  static Result<GlobalAvgPool> create(tn_ctx*, const Options&) { return GlobalAvgPool{}; }
  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_CHECK(one_input(use, 3).status());
    Value mean = use.op("GlobalAveragePool", {use.input(0)});
    return use.outputs({use.op("Flatten", {mean}, {{"axis", 1}})});
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(global_avg_pool,
            tenon::layers::GlobalAvgPool,
            "layers.global_avg_pool",
            "the mean of each channel",
            R"({"properties": {}})")

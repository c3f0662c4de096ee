// SPDX-License-Identifier: Apache-2.0
// "layers.group_norm": groups of channels normalized in each sample, times weight [c] plus bias [c]
// (Wu and He 2018).
#include "layer.hpp"

namespace tenon::layers {
namespace {

class GroupNorm {
 public:
  static Result<GroupNorm> create(tn_ctx* ctx, const Options& options) {
    GroupNorm made;
    made.groups_ = options.integer("groups");
    made.epsilon_ = options.number("epsilon");
    TN_TRY(init, Initializers::from(ctx, options));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_TRY(type, one_input(use, 3));
    TN_TRY(channels, known_size(type, 1, "channels"));
    if (channels % groups_)
      return invalid(
          cat("option groups: expected a divisor of the ", channels, " channels, got ", groups_));
    std::vector<Value> inputs{use.input(0), use.parameter({"weight", {channels}, &init_.weight}),
                              use.parameter({"bias", {channels}, &init_.bias})};
    return use.outputs(
        {use.op("GroupNormalization", inputs, {{"num_groups", groups_}, {"epsilon", epsilon_}})});
  }

 private:
  int64_t groups_ = 1;
  double epsilon_ = 0;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(group_norm,
            tenon::layers::GroupNorm,
            "layers.group_norm",
            "groups of channels normalized in each sample",
            R"({"required": ["groups"],
  "properties": {
    "groups": {"type": "integer", "minimum": 1, "description": "number of groups"},
    "epsilon": {"type": "number", "exclusiveMinimum": 0, "default": 1e-5, "description": "epsilon, added to the variance"},)" TENON_INITS(
                "layers.ones", "layers.zeros") "}}")

// SPDX-License-Identifier: Apache-2.0
// "layers.parameter": a tensor of its own, under the name of the layer: positions, a class token, a
// scale of somebody's own layer.
#include "layer.hpp"

namespace tenon::layers {
namespace {

class OwnParameter {
 public:
  static Result<OwnParameter> create(tn_ctx* ctx, const Options& options) {
    OwnParameter made;
    made.shape_ = ints_of(options.get("shape"));
    made.trained_ = options.flag("trained");
    TN_TRY(init, initializer_option(ctx, options, "init"));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    if (use.n_inputs() != 0) return invalid(cat("inputs: expected none, got ", use.n_inputs()));
    if (use.name().empty()) return invalid("expected a name, got none");
    // As PyTorch counts them: [fan_out, fan_in] times what is behind.
    const bool is_matrix = shape_.size() > 1;
    const int64_t size = element_count(shape_);
    Value made = use.parameter({.name = "",
                                .shape = shape_,
                                .initializer = &init_,
                                .fan_in = is_matrix ? size / shape_[0] : 1,
                                .fan_out = is_matrix ? size / shape_[1] : 1,
                                .trained = trained_});
    TN_CHECK(use.status());
    // A single number is else taken for a setting.
    if (trained_ && shape_.empty()) TN_CHECK(use.edit().set_note(made.id, "train", any_bool(true)));
    return use.outputs({made});
  }

 private:
  std::vector<int64_t> shape_;
  bool trained_ = true;
  Component init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(parameter,
            tenon::layers::OwnParameter,
            "layers.parameter",
            "a tensor of its own, trained with the rest",
            R"({"required": ["shape"],
  "properties": {
    "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}, "description": "its sizes"},
    "trained": {"type": "boolean", "default": true, "description": "whether training changes it"},)" TENON_WEIGHT_INIT(
                "layers.zeros") "}}")

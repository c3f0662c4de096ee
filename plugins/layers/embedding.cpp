// SPDX-License-Identifier: Apache-2.0
// "layers.embedding": rows of weight [count, width] by integers [...]: [..., width].
#include "layer.hpp"

namespace tenon::layers {
namespace {

class Embedding {
 public:
  static Result<Embedding> create(tn_ctx* ctx, const Options& options) {
    Embedding made;
    made.count_ = options.integer("count");
    made.width_ = options.integer("width");
    TN_TRY(init, Initializers::from(ctx, options, false));
    made.init_ = std::move(init);
    return made;
  }

  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_CHECK(check_one_input(use));
    Type type = use.input(0).type();
    if (type.dtype != TN_I32 && type.dtype != TN_I64)
      return invalid(
          cat("input 0: expected int32 or int64 numbers of rows, got ", type_text(type)));
    Value weight = use.parameter({"weight", {count_, width_}, &init_.weight, width_, count_});
    return use.outputs({use.op("Gather", {weight, use.input(0)}, {{"axis", 0}})});
  }

 private:
  int64_t count_ = 0, width_ = 0;
  Initializers init_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(embedding,
            tenon::layers::Embedding,
            "layers.embedding",
            "a row of numbers for each integer",
            R"({"required": ["count", "width"],
  "properties": {
    "count": {"type": "integer", "minimum": 1, "description": "number of embeddings: indices are below it"},
    "width": {"type": "integer", "minimum": 1, "description": "embedding size"},)" TENON_WEIGHT_INIT(
                "layers.normal") "}}")

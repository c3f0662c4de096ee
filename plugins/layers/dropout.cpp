// SPDX-License-Identifier: Apache-2.0
// "layers.dropout": while training, sets elements to 0 at random and divides the others by what is
// left (Srivastava et al. 2014); else nothing.
#include "layer.hpp"

namespace tenon::layers {
namespace {

class Dropout {
 public:
  static Result<Dropout> create(tn_ctx*, const Options& options) {
    return Dropout{options.number("ratio")};
  }
  Result<std::vector<Value>> build(LayerUse& use) const {
    TN_CHECK(one_input(use, 0).status());
    return use.outputs({use.op("Dropout", {use.input(0), use.number(ratio_, TN_F32)})});
  }

 private:
  explicit Dropout(double ratio) : ratio_(ratio) {}
  double ratio_;
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(dropout,
            tenon::layers::Dropout,
            "layers.dropout",
            "zeros at random while training",
            R"({"order": ["ratio"],
  "properties": {
    "ratio": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.5, "description": "probability that an element is zeroed"}}})")

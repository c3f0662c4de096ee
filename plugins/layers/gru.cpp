// SPDX-License-Identifier: Apache-2.0
// "layers.gru": gated cells (Cho et al. 2014) over a sequence; PyTorch's parameters.
#include "recurrent.hpp"

namespace tenon::layers {
namespace {

struct Gru {
  Recurrent recurrent;
  // gates reset, update, new there; update, reset, hidden in ONNX
  static Result<Gru> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(made, Recurrent::create(ctx, options, {"GRU", {1, 0, 2}, false}));
    return Gru{std::move(made)};
  }
  Result<std::vector<Value>> build(LayerUse& use) const { return recurrent.build(use); }
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(gru,
            tenon::layers::Gru,
            "layers.gru",
            "gated cells (Cho et al. 2014)",
            TENON_RECURRENT_SCHEMA("GRU"))

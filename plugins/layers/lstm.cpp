// SPDX-License-Identifier: Apache-2.0
// "layers.lstm": cells with a memory (Hochreiter and Schmidhuber 1997) over a sequence; PyTorch's
// parameters.
#include "recurrent.hpp"

namespace tenon::layers {
namespace {

struct Lstm {
  Recurrent recurrent;
  // gates in, forget, cell, out there; in, out, forget, cell in ONNX
  static Result<Lstm> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(made, Recurrent::create(ctx, options, {"LSTM", {0, 3, 1, 2}, true}));
    return Lstm{std::move(made)};
  }
  Result<std::vector<Value>> build(LayerUse& use) const { return recurrent.build(use); }
};

}  // namespace
}  // namespace tenon::layers

TENON_LAYER(lstm,
            tenon::layers::Lstm,
            "layers.lstm",
            "cells with a memory (Hochreiter and Schmidhuber 1997)",
            TENON_RECURRENT_SCHEMA("LSTM"))

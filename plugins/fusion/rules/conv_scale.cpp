// SPDX-License-Identifier: Apache-2.0
// Before:  y = Conv(x, w, b) op c with op one of Mul, Div, Add, Sub; ConvTranspose, Gemm and
//          BatchNormalization for inference too, and a Concat of them along the channels.
// After:   y = Conv(x, w', b').
// Needs:   c is one number or one per channel (shape [C, 1, 1] for images); the Conv's weights are
//          constants (f32, f64) and its result is used once.
#include "per_channel.hpp"

namespace tenon::fusion {
namespace {

// One number per channel: c has n elements along the channel's axis, or one in all.
std::optional<std::vector<double>> by_channel(Value constant, Value result, int64_t n) {
  std::optional<std::vector<double>> all = numbers_of(constant);
  Type own = constant.type(), type = result.type();
  if (!all || !type.ranked || own.rank() > type.rank() || type.rank() < 2) return std::nullopt;
  if (all->size() == 1) return std::vector<double>(static_cast<size_t>(n), all->front());
  size_t from_end = type.rank() - 1;  // channels are axis 1
  bool along = all->size() == static_cast<size_t>(n) && own.rank() >= from_end &&
               own.dims[own.rank() - from_end] == n;
  return along ? all : std::nullopt;
}

Result<bool> rewrite(Rewriter& rewriter, Node node) {
  for (uint64_t side = 0; side < 2; ++side) {
    bool left_only = node.is("Div") || node.is("Sub");
    if (side == 1 && left_only) return false;
    Node producer = node.input(side) ? node.input(side).producer() : Node{};
    int64_t n = scalable_channels(producer);
    if (n < 0) continue;
    std::optional<std::vector<double>> c = by_channel(node.input(1 - side), node.input(side), n);
    if (!c) continue;
    Affine affine{std::vector<double>(c->size(), 1), std::vector<double>(c->size(), 0)};
    for (size_t i = 0; i < c->size(); ++i) {
      double value = (*c)[i];
      if (node.is("Mul")) affine.scale[i] = value;
      if (node.is("Div")) affine.scale[i] = 1 / value;
      if (node.is("Add")) affine.shift[i] = value;
      if (node.is("Sub")) affine.shift[i] = -value;
    }
    return scale_channels(rewriter, node, producer, affine);
  }
  return false;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"Mul", "Div", "Add", "Sub"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(conv_scale,
            "fusion.conv_scale",
            "folds scales and shifts by channel into the weights before them",
            tenon::fusion::run)

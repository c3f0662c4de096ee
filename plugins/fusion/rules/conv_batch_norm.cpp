// SPDX-License-Identifier: Apache-2.0
// Before:  y = BatchNormalization(Conv(x, w, b), scale, bias, mean, variance); ConvTranspose and
//          Gemm too, and a Concat of them along the channels.
// After:   y = Conv(x, w', b').
// Formula: s = scale/sqrt(variance + epsilon); w' = w*s by output channel; b' = (b - mean)*s +
// bias. Needs:   inference mode, all but x constant (f32, f64), each Conv's result used once.
// Source:  Ioffe, Szegedy: Batch Normalization (2015), algorithm 2.
#include "per_channel.hpp"

namespace tenon::fusion {
namespace {

Result<bool> rewrite(Rewriter& rewriter, Node norm) {
  Node producer = norm.input(0) ? norm.input(0).producer() : Node{};
  int64_t n = scalable_channels(producer);
  if (n < 0 || norm.attr_int("training_mode") != 0) return false;
  for (uint64_t i = 1; i < norm.n_outputs(); ++i) {
    if (norm.output(i).is_used()) return false;
  }
  std::vector<std::vector<double>> given;
  for (uint64_t i = 1; i < 5; ++i) {
    std::optional<std::vector<double>> all = numbers_of(norm.input(i));
    if (!all || all->size() != static_cast<size_t>(n)) return false;
    given.push_back(std::move(*all));
  }
  double epsilon = norm.attr_float("epsilon", 1e-5);
  Affine affine;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    double scale = given[0][i] / std::sqrt(given[3][i] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(given[1][i] - given[2][i] * scale);
  }
  return scale_channels(rewriter, norm, producer, affine);
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"BatchNormalization"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(conv_batch_norm,
            "fusion.conv_batch_norm",
            "folds batch normalization into the weights before it",
            tenon::fusion::run)

// SPDX-License-Identifier: Apache-2.0
// Before:  y = BatchNormalization(Conv(x, W, b), scale, bias, mean, var)
// After:   y = Conv(x, W', b')
// Formula: k = scale / sqrt(var + epsilon); W'[o, ...] = W[o, ...] k[o]; b' = (b - mean) k + bias
// Needs:   constants in f32, a Conv that only the normalization reads, inference
// Source:  Ioffe and Szegedy 2015, section 3.1: at inference the normalization is linear
#include <cmath>

#include "rule.hpp"

namespace tenon::fusion {
namespace {

Result<bool> fold_norm(EditView edit, Node norm) {
  if (!norm.is("BatchNormalization") || norm.attr_int("training_mode")) return false;
  Node conv = norm.input(0).producer();
  if (!conv || !conv.is("Conv")) return false;
  Value between = conv.output();
  if (between.consumer_count() != 1 || between.is_output()) return false;
  Type type = conv.input(1).type();
  if (!type.is_static() || type.dtype != TN_F32 || !conv.input(1).is_constant()) return false;
  int64_t channels = type.dims[0];
  const float* params[4];
  for (uint64_t i = 0; i < 4; ++i) {
    params[i] = floats_of(norm.input(i + 1), channels);
    if (!params[i]) return false;
  }
  const float* old_bias = conv.input(2) ? floats_of(conv.input(2), channels) : nullptr;
  if (conv.input(2) && !old_bias) return false;

  double epsilon = norm.attr_float("epsilon", 1e-5);
  TN_TRY(weights, Tensor::copy_of(edit.ctx(), conv.input(1).constant().dl()));
  std::vector<float> bias(static_cast<size_t>(channels));
  int64_t inner = type.elements() / std::max<int64_t>(channels, 1);
  for (int64_t c = 0; c < channels; ++c) {
    double factor =
        static_cast<double>(params[0][c]) / std::sqrt(static_cast<double>(params[3][c]) + epsilon);
    for (int64_t i = 0; i < inner; ++i) {
      float& w = weights.data<float>()[c * inner + i];
      w = static_cast<float>(static_cast<double>(w) * factor);
    }
    double before = old_bias ? static_cast<double>(old_bias[c]) : 0.0;
    bias[static_cast<size_t>(c)] = static_cast<float>(
        (before - static_cast<double>(params[2][c])) * factor + static_cast<double>(params[1][c]));
  }
  TN_TRY(new_weights, edit.constant(weights, cat(conv.name(), ".weight")));
  TN_TRY(new_bias, edit.constant<float>(TN_F32, {channels}, bias, cat(conv.name(), ".bias")));
  TN_CHECK(edit.set_input(conv, 1, new_weights));
  TN_CHECK(edit.set_input(conv, 2, new_bias));
  TN_CHECK(edit.replace(norm.output(), between));
  TN_CHECK(edit.erase(norm));
  return true;
}

}  // namespace
}  // namespace tenon::fusion

TENON_RULE(conv_batch_norm,
           "conv_batch_norm",
           "folds a batch normalization into the convolution",
           tenon::fusion::fold_norm,
           nullptr)

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of quantized values with known weights in our own kernel (kernels/int8_product.h), where
// oneDNN's would saturate: on CPUs without VNNI. What follows the sums is taken along
// (gemm_epilogue.hpp).

#include <string>

#include "kernels/int8_product.h"
#include "product.hpp"

namespace tenon::onednn {

// A constant right operand: the element (k, n) of a group lies at
// data[group * group_stride + k_place(k) + n * n_stride].
struct GemmWeights {
  View view = {};  // per tensor, or with one scale for each column of each group
  int64_t groups = 1;
  int64_t group_stride = 0;
  int64_t n_stride = 0;
  Dims k_places = {};
};
// Where the elements of the weights are read, for the name of a packed form of them: the same bytes
// may be the weights of a convolution, tap by tap, and of a product.
std::string name_of_places(const GemmWeights& weights);

// One step: `groups` products over the same rows.
struct GemmStep {
  int node = kNone;
  View src = {};  // quantized values
  GemmWeights weights = {};
  kernels::Int8ProductArgs args =
      {};                 // of the first group: a (but for its quantized values), m, n, k
  int64_t src_group = 0;  // quantized values between the groups of the source
  Dims dst_strides = {};  // of the result's dims
  int64_t dst_row = 0;    // elements between rows
  int bias = kNone;       // the node's own
  ChannelNorm norm = {};  // of the sums with their bias; empty: none
};

// Adds the step with as much of the epilogue as the kernel takes, and sets the view of its result.
void add_int8_step(Lowering& lowering, GemmStep step, const Epilogue& epilogue);

// A convolution as a product: a row is what the window sees at one place of a channels-last image.
// All sizes; the source is left out, and so is what add_weights fills in. Weights must be dense,
// images of two dimensions at most.
GemmStep conv_step(const Lowering& lowering, int node);
// Where the weights of a convolution lie, tap by tap, and the BatchNormalization behind it.
void add_weights(Lowering& lowering, const Epilogue& epilogue, GemmStep* step);
// The quantized values as the step reads them; later readers want them channels-last too.
View quantized_channels_last(Lowering& lowering, int value);

}  // namespace tenon::onednn

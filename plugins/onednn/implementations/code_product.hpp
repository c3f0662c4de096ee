// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of codes with known weights in our own kernel (kernels/code_product.h), where oneDNN's
// would saturate: on CPUs without VNNI. What follows the sums is taken along (code_tail.hpp).

#include "kernels/code_product.h"
#include "product.hpp"

namespace tenon::onednn {

// A constant right operand: the code of (k, n) of a group lies at
// data[group * group_stride + k_place(k) + n * n_stride].
struct CodeWeights {
  View view = {};  // per tensor, or with one scale for each column of each group
  int64_t groups = 1;
  int64_t group_stride = 0;
  int64_t n_stride = 0;
  Dims k_places = {};
};

// One step: `groups` products over the same rows.
struct CodeStep {
  int node = kNone;
  View src = {};  // codes
  CodeWeights weights = {};
  kernels::CodeProductArgs args = {};  // of the first group: a (but for its codes), m, n, k
  int64_t src_group = 0;               // codes between the groups of the source
  Dims dst_strides = {};               // of the result's dims
  int64_t dst_row = 0;                 // elements between rows
  int bias = kNone;                    // the node's own
  ChannelNorm norm = {};               // of the sums with their bias; empty: none
};

// Adds the step with as much of the tail as the kernel takes, and sets the view of its result.
void add_code_step(Lowering& lowering, CodeStep step, const Tail& tail);

// A convolution as a product: a row is what the window sees at one place of a channels-last image.
// All sizes; the source is left out, and so is what add_weights fills in. Weights must be dense,
// images of two dimensions at most.
CodeStep conv_step(const Lowering& lowering, int node);
// Where the weights of a convolution lie, tap by tap, and the BatchNormalization behind it.
void add_weights(Lowering& lowering, const Tail& tail, CodeStep* step);
// The codes as the step reads them; later readers want them channels-last too.
View codes_channels_last(Lowering& lowering, int value);

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node with a weight that smaller layers may take the place of: Conv, MatMul or Gemm.

#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

enum class Form { kConv, kMatMul, kGemm };

struct Layer {
  Node node;
  Form form = Form::kConv;
  Kernel weight;                // output channels first, whatever the node's layout
  uint32_t dtype = TN_F32;      // of the weight
  std::vector<int64_t> window;  // extents of a convolution's window; products have none
  int64_t group = 1;
  // Places that the input and the output have, for counting work. Where the model leaves a size
  // open the batch is 1 and an output extent is 1.
  int64_t batch = 1;
  std::vector<int64_t> extents_in, extents_out;
  bool is_open = false;  // a size other than the batch is not known
};

// Whether the node is a convolution or product with a weight, which the report has to mention.
bool has_weight(Node node);

// The layer of the node; an error says why it cannot be decomposed in any way.
Result<Layer> read_layer(Node node);

}  // namespace tenon::decomposer

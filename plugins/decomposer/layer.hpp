// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node with a weight that smaller layers may take the place of: an operator whose row says that
// it is a product or a convolution, whosever it is.

#include <string>
#include <vector>

#include "tenon/sdk/layer_form.hpp"

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

struct Layer {
  Node node;
  uint64_t act = 0, weight_input = 1;  // inputs of the node
  int64_t bias = -1;                   // likewise; -1: the operator has none
  LayerForm form;
  bool is_conv = false;
  Kernel weight;                // output channels first, whatever the node's layout
  uint32_t dtype = TN_F32;      // of the weight
  std::vector<int64_t> window;  // extents of a convolution's window; products have none
  int64_t group = 1;
  // Places that the input and the output have, for counting work. Where the model leaves a size
  // open the batch is 1, and so is the extent of the smaller of both.
  int64_t batch = 1;
  std::vector<int64_t> extents_in, extents_out;
  bool is_open = false;  // a size other than the batch is not known

  // A transposed convolution lays its window on once for each entry that it reads, others once for
  // each result; its weight has the channels that it reads first.
  bool is_transposed() const { return is_conv && form.weight_in < form.weight_out; }

  // Axes of the node's weight in the order of a kernel's: what it makes, what it reads, the window.
  std::vector<int64_t> weight_axes() const {
    std::vector<int64_t> axes{form.weight_out, form.weight_in};
    axes.insert(axes.end(), form.window.begin(), form.window.end());
    return axes;
  }
};

// Whether the node is a convolution or product with a weight, which the report has to mention.
bool has_weight(Node node);

// The layer of the node; an error says why it cannot be decomposed in any way.
Result<Layer> read_layer(Node node);

// Numbers of a tensor with these extents, its axes put in this order.
std::vector<double> permuted(const std::vector<double>& numbers,
                             const std::vector<int64_t>& dims,
                             const std::vector<int64_t>& order);

}  // namespace tenon::decomposer

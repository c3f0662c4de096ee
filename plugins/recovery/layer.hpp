// SPDX-License-Identifier: Apache-2.0
#pragma once
// A product or a convolution as rows of numbers: what it reads at each position, what it makes
// there.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/layer_form.hpp"

#include "least_squares.hpp"

namespace tenon::recovery {

struct Layer {
  Node node;
  uint64_t act = 0, weight = 1;  // inputs of the node
  LayerForm form;
  bool is_conv = false;
  std::vector<int64_t> window, strides, dilations, pads;  // of a convolution; pads: starts, ends
  int64_t groups = 1, n_out = 0;                          // n_out: of all groups
  // Columns: what one output channel reads at one position, of a convolution the channels of one
  // tap side by side, and tap after tap.
  int64_t n_in = 0;
  // Constants that add to the sums, one number for each output channel: the node's own input, or
  // that of an Add behind it. Falsy: there is none.
  Value bias = {};
  // The last node that only adds to the sums, and what it adds beside the bias: of a residual
  // network the way around the block. Falsy: nothing.
  Node last = {};
  Value around = {};

  int64_t taps() const { return element_count(window); }  // 1 of a product
  Value read() const { return node.input(act); }
  Value made() const { return last.output(); }
  // Element of the weight's memory for each [output channel][column].
  std::vector<size_t> positions() const;
};

// Whether it multiplies with a constant, or with what is computed from constants.
bool has_weight(Node node);
// An error says why it cannot be refitted.
Result<Layer> read_layer(Node node);

// The present weights, group after group.
Result<std::vector<Fit>> present_fits(const Layer& layer);
// Puts these in their place.
Status write_fits(EditView edit, const Layer& layer, const std::vector<Fit>& fits);

}  // namespace tenon::recovery

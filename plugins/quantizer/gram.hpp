// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a layer's weight is multiplied with, as the matrix X^T X of all inputs: computed by the
// graph itself, so that it runs as fast as the model does.

#include <optional>
#include <string>
#include <vector>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/layer_form.hpp"

#include "role.hpp"

namespace tenon::quantizer {

// A weight as matrices [rows, columns], one for each group: a row for each output channel.
struct WeightForm {
  int64_t groups = 1, rows = 0, columns = 0;  // of each group
  bool is_transposed = false;                 // [columns, rows]: a product's, as MatMul has it
  LayerForm layer = {};

  // Where number (row, column) of a group lies.
  int64_t at(int64_t group, int64_t row, int64_t column) const {
    if (is_transposed) return column * rows + row;
    return (group * rows + row) * columns + column;
  }
};

// Of products with a weight of rank 2 and of convolutions. Nothing for others; why says so.
std::optional<WeightForm> weight_form(Node node, const Product& product, std::string* why);

// Beyond this the matrix and its factors cost more than they bring: 32 MiB in doubles.
inline constexpr int64_t kMostColumns = 2048;

struct Gram {
  uint64_t inputs = 0;       // rows of X
  std::vector<double> sums;  // [groups, columns, columns], or one for all groups
};

struct GramLayer {
  Node node;
  Product product;
  WeightForm form;
  // A recurrent weight that is multiplied with the state, which output 0 holds for every step.
  bool is_state = false;

  // A convolution's groups, or directions, have inputs of their own.
  bool has_parts() const { return form.groups > 1 && (form.layer.slides || is_state); }
};

struct GramData {
  Feed* feed;
  const std::vector<std::string>& backends;
  std::string mask;  // of padding; empty: everything counts
};

// One run of the graph over the data.
Result<std::vector<Gram>> grams_of(tn_ctx* ctx,
                                   Graph graph,
                                   const std::vector<GramLayer>& layers,
                                   const GramData& data,
                                   const Cancel& cancel);

}  // namespace tenon::quantizer

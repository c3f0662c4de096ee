// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layers of a model one after the other, and rows for the regression of one, at positions drawn
// from one batch.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/padding.hpp"
#include "tenon/sdk/run.hpp"

#include "layer.hpp"

namespace tenon::recovery {

struct LayerRows {  // of a report
  nlohmann::ordered_json done = nlohmann::ordered_json::array(), left = done;
};
// Calls visit with each node that has a weight, in the order of data; the graph may be edited
// meanwhile. A failure says why the node is left.
using Visit = std::function<Status(Node node, uint64_t number, nlohmann::ordered_json* row)>;
Result<LayerRows> each_layer(
    tn_ctx* ctx, tn_graph* raw, std::string_view doing, const Cancel& cancel, const Visit& visit);

// How many rows of a layer to draw from each batch. option: of all batches; 0: sixteen for each
// column, at least 4,096.
int64_t rows_in_batch(const Layer& layer, int64_t option, uint64_t batches);

// Positions of a layer's output: [outer][n_out][inner], where a position is one of outer x inner.
struct Positions {
  int64_t outer = 0, inner = 1;
  std::vector<int64_t> chosen;

  // At most `wanted` of all that count, drawn from the stream.
  static Positions draw(
      const Layer& layer, const DLTensor& made, int64_t wanted, uint64_t stream, PaddingMask* mask);
};

// What group g of the layer reads at these positions: [positions, n_in].
Matrix inputs_at(const Layer& layer,
                 const DLTensor& read,
                 const Positions& positions,
                 int64_t group,
                 const DLTensor& made);

// Channels [first, first + count) of a layer's output, or those of this list, at these positions.
Matrix outputs_at(const DLTensor& made,
                  const Positions& positions,
                  const std::vector<int64_t>& channels);

}  // namespace tenon::recovery

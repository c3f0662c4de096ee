// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows for the regression of a layer, at places drawn from one batch.

#include <cstdint>
#include <vector>

#include "layer.hpp"

namespace tenon::recovery {

// Places of a layer's output: [outer][n_out][inner], where a place is one of outer x inner.
struct Places {
  int64_t outer = 0, inner = 1;
  std::vector<int64_t> chosen;

  // At most `wanted` of all, drawn from the stream.
  static Places draw(const Layer& layer, const DLTensor& made, int64_t wanted, uint64_t stream);
};

// What group g of the layer reads at these places: [places, n_in].
Matrix inputs_at(const Layer& layer,
                 const DLTensor& read,
                 const Places& places,
                 int64_t group,
                 const DLTensor& made);

// Channels [first, first + count) of a layer's output, or those of this list, at these places.
Matrix outputs_at(const DLTensor& made, const Places& places, const std::vector<int64_t>& channels);

}  // namespace tenon::recovery

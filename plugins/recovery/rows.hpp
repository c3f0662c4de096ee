// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows for the regression of a layer, at positions drawn from one batch.

#include <cstdint>
#include <vector>

#include "tenon/sdk/padding.hpp"

#include "layer.hpp"

namespace tenon::recovery {

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

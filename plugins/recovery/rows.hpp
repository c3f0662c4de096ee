// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows for the regression of a layer, at positions drawn from one batch.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layer.hpp"

namespace tenon::recovery {

// Which entries of the first axes count. In a batch with padding most rows may be padding, and a
// fit to these is one to numbers that nothing reads.
class Mask {
 public:
  // The input of the model that is 0 where nothing counts; no name: all counts.
  static Result<Mask> find(Graph model, const std::string& name);
  // Of one batch, whose inputs are in the order of the model's.
  Status read(std::span<const DLTensor> inputs);
  // Those of `outer` positions of a value that count: all where its axes do not begin as the
  // mask's.
  std::vector<int64_t> among(const DLTensor& value, int64_t outer) const;

 private:
  int64_t input_ = -1;
  std::vector<int64_t> dims_;
  std::vector<char> counts_;
};

// Positions of a layer's output: [outer][n_out][inner], where a position is one of outer x inner.
struct Positions {
  int64_t outer = 0, inner = 1;
  std::vector<int64_t> chosen;

  // At most `wanted` of all that count, drawn from the stream.
  static Positions draw(
      const Layer& layer, const DLTensor& made, const Mask& mask, int64_t wanted, uint64_t stream);
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

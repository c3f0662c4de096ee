// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::pruner {

std::vector<uint32_t> block_ids(const std::vector<int64_t>& shape,
                                size_t makes,
                                size_t reads,
                                const BlockShape& block) {
  // Extents in blocks, and strides of elements.
  std::vector<int64_t> sizes(shape.size(), 1), strides(shape.size(), 1), blocks = shape;
  sizes[makes] = block.makes;
  sizes[reads] = block.reads;
  for (size_t axis = shape.size(); axis-- > 0;) {
    blocks[axis] = (shape[axis] + sizes[axis] - 1) / sizes[axis];
    if (axis + 1 < shape.size()) strides[axis] = strides[axis + 1] * shape[axis + 1];
  }
  const int64_t count = shape.empty() ? 1 : strides[0] * shape[0];
  std::vector<uint32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t id = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      id = id * blocks[axis] + i / strides[axis] % shape[axis] / sizes[axis];
    ids[static_cast<size_t>(i)] = static_cast<uint32_t>(id);
  }
  return ids;
}

Mask drop_lowest_blocks(const std::vector<double>& scores,
                        const std::vector<uint32_t>& ids,
                        uint64_t gone) {
  struct Block {
    double sum = 0;
    uint64_t size = 0;
    bool goes = false;
    double mean() const { return sum / static_cast<double>(size); }
  };
  std::vector<Block> blocks(ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end()) + 1);
  for (size_t i = 0; i < scores.size(); ++i) {
    Block& block = blocks[ids[i]];
    ++block.size;
    if (!std::isinf(scores[i]) || scores[i] > 0) block.sum += scores[i];
  }
  std::vector<uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return blocks[a].mean() < blocks[b].mean(); });
  for (uint32_t id : order) {
    if (blocks[id].size > gone) break;
    blocks[id].goes = true;
    gone -= blocks[id].size;
  }
  Mask mask(scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    mask[i] = !blocks[ids[i]].goes && !(std::isinf(scores[i]) && scores[i] < 0);
  return mask;
}

}  // namespace tenon::pruner

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Liveness and the arena: a buffer lives from the first step that touches it to the last, and
// buffers that live at the same time lie apart. The host places them (tenon.host.arena/1).

#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::backend {

class Lives {
 public:
  explicit Lives(size_t n_buffers) : blocks_(n_buffers, {0, UINT64_MAX, 0, 0}) {}
  void touch(int buffer, size_t step) {
    if (buffer < 0) return;
    tn_arena_block& block = blocks_[static_cast<size_t>(buffer)];
    if (block.first == UINT64_MAX) block.first = step;
    block.first = std::min<uint64_t>(block.first, step);
    block.last = std::max<uint64_t>(block.last, step);
  }
  // The steps that touch it first and last; first > last: none does.
  uint64_t first(int buffer) const { return blocks_[static_cast<size_t>(buffer)].first; }
  uint64_t last(int buffer) const { return blocks_[static_cast<size_t>(buffer)].last; }
  // bytes_of(buffer): 0 for what lies elsewhere; put(buffer, offset) is called for the others that
  // some step touches. Offsets are multiples of align, a power of two.
  template <class BytesOf, class Put>
  Result<tn_arena_size> place(uint64_t align, BytesOf&& bytes_of, Put&& put) {
    for (size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].bytes = static_cast<uint64_t>(bytes_of(i));
    tn_arena_size size{};
    TN_CHECK(services.arena->place(blocks_.data(), blocks_.size(), align, &size));
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].bytes > 0 && blocks_[i].first <= blocks_[i].last) put(i, blocks_[i].offset);
    return size;
  }

 private:
  std::vector<tn_arena_block> blocks_;
};

}  // namespace tenon::backend

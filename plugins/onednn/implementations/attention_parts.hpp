// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention and its gradient by primitives that go by parts: the scores of some batches or heads,
// what reads them, then those of the next, so that scores are read while they lie in cache (the
// idea of Dao et al. 2022, "FlashAttention", section 3, for a cache that holds whole rows). The
// parts are of one size, so each primitive is made once.

#include "lowering/softmax_front.hpp"

namespace tenon::onednn {

// Along one batch axis of the scores: how many indices a part takes, and how many parts there are.
struct Cut {
  size_t axis = 0;
  int64_t width = 0;
  int64_t n_parts = 1;
};

// So that so many tensors of the scores' size stay in cache. One part when all of them do.
Cut choose_cut(const View& scores, int threads, int n_tensors = 1);
// The part-th of a view whose axes are the last ones of scores of that rank; what broadcasts stays
// whole.
View part_of(View view, const Cut& cut, size_t rank, int64_t part);
// Row-major memory for one part of a value of these dimensions.
View scratch_part(Lowering& lowering, ElementType type, const Dims& dims, const Cut& cut);
// c = a b, in the name of a node.
void multiply_part(
    Lowering& lowering, const std::string& name, const View& a, const View& b, const View& c);

}  // namespace tenon::onednn

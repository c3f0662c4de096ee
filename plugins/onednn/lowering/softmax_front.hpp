// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands between attention's scores and their Softmax: a constant factor and an additive mask.
// The softmax kernel takes both along in its one pass, so nothing else should.

#include <optional>
#include <vector>

#include "lowering.hpp"

namespace tenon::onednn {

struct SoftmaxFront {
  float scale = 1.0F;
  int mask = kNone;        // a value
  std::vector<int> nodes;  // the factor's and the mask's, when they are there
  int softmax = kNone;
};

// From `scores` to a Softmax over its last axis; nothing when something else comes between.
std::optional<SoftmaxFront> find_softmax_front(Lowering& lowering, int scores);
void lower_softmax_front(Lowering& lowering, int scores, const SoftmaxFront& front);
// The pass alone: src and dst are row-major, mask is the front's view when it has one. inner: the
// number of elements behind the axis, which the views leave out; more than 1: no mask.
Step softmax_step(const Node& node,
                  const SoftmaxFront& front,
                  const View& src,
                  const View& dst,
                  const View* mask,
                  int64_t inner = 1);

}  // namespace tenon::onednn

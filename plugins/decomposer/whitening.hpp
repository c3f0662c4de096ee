// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors that count as what a layer makes of its inputs: with the second moments of the input
// channels E[x xT] = S ST the error of the output is ||(W - W') S||, so W S is decomposed, and the
// inverse of S goes into the step that reads the channels (Wang et al., "SVD-LLM", ICLR 2025; exact
// for products and windows of 1, where places of a window are correlated it is a part of the norm).

#include <map>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/run.hpp"

#include "steps.hpp"

namespace tenon::decomposer {

class Whitening {
 public:
  // moment: [n_in, n_in]; a ten-thousandth of its mean diagonal is added.
  static Whitening of(Matrix moment);
  void whiten(Kernel* weight) const;
  // step: the first of those that take the layer's place, [rank, n_in, window...].
  void undo(Step* step) const;

 private:
  Matrix root_;  // S, lower
};

// Of the nodes whose input's channels are known.
Result<std::map<tn_node_id, Whitening>> whitenings_of(tn_ctx* ctx,
                                                      Graph graph,
                                                      const std::vector<Node>& nodes,
                                                      const FeedOptions& inputs,
                                                      const std::vector<std::string>& backends,
                                                      const Cancel& cancel);

}  // namespace tenon::decomposer

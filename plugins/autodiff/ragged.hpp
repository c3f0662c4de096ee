// SPDX-License-Identifier: Apache-2.0
#pragma once
// What loops leave whose number of steps differs by example: along the first axis each example has
// entries of its own, and behind them others that stand for nothing. A Scan may walk along it, as
// the backward pass of such a loop does: in steps that are not an example's own its states stay.

#include <optional>

#include "batching.hpp"
#include "bodies.hpp"

namespace tenon::autodiff {

// What stands for one example's truth values of its steps, of the length of `scan`; wide: those of
// all examples, [examples, steps].
Result<Value> add_mask(BatchContext& context, Value scan, Value wide);

bool reads_ragged(const BatchContext& context, Node node);
// A Scan along ragged values in a form that leaves out steps which are not the example's: to be
// batched in the node's place. Nothing where it reads none, or is this form already.
Result<std::optional<Node>> masked_scan(BatchContext& context,
                                        Node node,
                                        Graph body,
                                        const Interface& parts);
// Whether a node that reads ragged values can be batched (a Scan, element by element), and then
// marks what it makes of them; refuses others.
Status pass_ragged(BatchContext& context, Node node);
Status refuse_ragged(Node by);

}  // namespace tenon::autodiff

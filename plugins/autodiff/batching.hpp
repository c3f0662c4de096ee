// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batching: every node is replaced by one that does the same for each entry of a new first axis.

#include <deque>
#include <unordered_map>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/role/op.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::autodiff {

using Batched = std::unordered_map<tn_value_id, Value>;  // with the new first axis

// What random operators do under vmap: refuse, draw once for all examples, or for each its own.
enum class RandomMode : uint8_t { kError, kSame, kDifferent };

// The ladder of one node whose inputs are in `batched`: batch column, pointwise, view, axes, parts
// (given back: batch these in its place), a loop over slices (listed in `loops`).
struct BatchContext {
  EditView edit;
  int64_t size = TN_DIM_UNKNOWN;  // of the axis
  RandomMode random = RandomMode::kError;
  Batched batched;
  std::vector<std::string> loops;
  // Values whose first axis has as many entries as the longest example's loop has steps, with the
  // truth values that say which of them are an example's own (ragged.hpp).
  Batched ragged;
};
Result<std::vector<Node>> batch_node(BatchContext& context, Node node);
// All nodes that these outputs need.
Status batch_nodes(BatchContext& context, const std::vector<Value>& outputs, const Cancel& cancel);

// By the row's axes: the first axis is, or joins, one that the operator treats entry by entry.
// False where they do not say so.
Result<bool> batch_by_axes(BatchContext& context, Node node, const tn_axes& axes);
// As a Scan over slices.
Status batch_by_loop(BatchContext& context, Node node);
// Control flow: the same with batched bodies. Gives back what is to be batched in its place: an If
// whose condition differs by example is both branches and a choice.
Result<std::vector<Node>> batch_control(BatchContext& context, Node node);

// A call of a function with a gradient of its own: of another one, whose body and gradient are
// batched, so that a gradient that is taken later is the function's own.
Status batch_function(BatchContext& context, Node node);

bool has_batched_input(const BatchContext& context, Node node);
// The batched form of an input, or the input itself.
Value form_of(const BatchContext& context, Value input);
// A value with the new axis: batched, or one for all examples as often as there are examples.
Value with_axis(Builder& b, const BatchContext& context, Value value);
// x with these sizes, of which the first is one example's; `batched` has the axis of examples.
Value for_examples(
    Builder& b, const BatchContext& c, Value x, std::vector<int64_t> dims, Value batched);
// x of [size, dims...] with axes of one inserted after the first: [size, 1..., dims...].
Value lifted(Builder& b, Value x, size_t n_ones);

}  // namespace tenon::autodiff

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bodies of control-flow nodes. They are closed: what they capture are trailing inputs of the node
// and of each body, counted by the attribute "captures". The host compiles them.

#include "cells.hpp"
#include "dims.hpp"

namespace tenon::ops {

inline constexpr uint32_t kControl = TN_OP_CONTROL | TN_OP_DATA_SHAPE;

// One run of a body; its results, of which there are at least n_out.
Result<std::vector<Tensor>> run_body(const Call& call,
                                     const tn_body& body,
                                     const std::vector<DLTensor>& in,
                                     size_t n_out);
Result<const tn_body*> body_of(const Call& call, std::string_view name);
Graph graph_of(Node node, std::string_view name);  // raw is NULL: there is none
Status copy_out(const Call& call, uint64_t i, const DLTensor& from);
// What two types have in common. The kind is the second's: a Loop may begin with an optional that
// its body makes a sequence.
Type common(const Type& a, const Type& b);
// How many of the last inputs are captured: the attribute "captures", refused where they are fewer.
Result<uint64_t> captures_of(Node node);
// The types of the body's outputs where its last inputs have the types of `given`, as those of a
// batch that is known; the body's own where some of these are not known or do not fit.
std::vector<Type> output_types(Graph body, const std::vector<Type>& given);
// The same of a body that runs again and again with states, `given` being theirs and what follows:
// outputs from `first` on are the next states, which must have the types of these.
std::vector<Type> repeated_types(Graph body,
                                 const std::vector<Type>& given,
                                 uint64_t first,
                                 uint64_t n_states);
// Of dense memory.
Type type_of(const DLTensor& tensor);
// Output i: what scan outputs collect, one per iteration, joined along a new axis. one: the
// type of what an iteration gives, of which an empty result has none; unknown sizes are 0.
Status join(const Call& call,
            uint64_t i,
            const std::vector<Tensor>& items,
            int64_t axis,
            bool reverse,
            const Type& one);

// A body in the making: build(edit) adds inputs, nodes and outputs.
template <class Build>
Result<OwnedGraph> make_body(EditView outer, const Build& build) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(outer.ctx(), &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  TN_CHECK(build(edit));
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(graph));
}

}  // namespace tenon::ops

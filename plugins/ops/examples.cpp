// SPDX-License-Identifier: Apache-2.0
#include "examples.hpp"

namespace tenon::ops {
namespace {

Status by_axis(Batching& b, std::vector<Value> inputs) {
  Node node = b.of();
  size_t rank = b.ranked(node.input(0), node.type()).rank();
  tn_any stated = node.attr("axis");
  int64_t axis = int_of(stated, 0);
  Node made = again(b, node, std::move(inputs), {{"axis", shifted({axis}, rank)[0]}});
  for (uint64_t i = 0; made && i < node.n_outputs(); ++i)
    b.set(i, made.output(i));
  return {};
}

}  // namespace

Value example_count(Batching& b) {
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i) {
    if (!b.batched(i)) continue;
    Type type = b.in(i).type();
    if (type.ranked && type.dims[0] >= 0) return b.ints({type.dims[0]});
    return b.op("Shape", {b.in(i)}, {{"start", 0}, {"end", 1}});
  }
  return {};
}

Value for_all_examples(Batching& b, uint64_t i) {
  if (!b.in(i) || b.batched(i)) return b.in(i);
  Value shape = b.op("Concat", {example_count(b), b.shape_of(b.in(i))}, {{"axis", 0}});
  return b.op("Expand", {b.in(i), shape});
}

Result<std::vector<int64_t>> stated_ints(Batching& b, uint64_t i) {
  std::optional<std::vector<int64_t>> known = known_ints(b.in(i));
  if (b.batched(i) || !known)
    return unsupported(cat("input ", i, ": expected a constant that is the same for all examples"));
  return *known;
}

std::vector<int64_t> shifted(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes)
    axis = (axis < 0 ? axis + static_cast<int64_t>(rank) : axis) + 1;
  return axes;
}

Status batch_first_by_axis(Batching& b) {
  std::vector<Value> inputs;
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i) {
    if (i > 0 && b.batched(i)) return unsupported("only input 0 may have the new axis");
    inputs.push_back(b.in(i));
  }
  return by_axis(b, inputs);
}

Status batch_all_by_axis(Batching& b) {
  std::vector<Value> inputs;
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i)
    inputs.push_back(for_all_examples(b, i));
  return by_axis(b, inputs);
}

}  // namespace tenon::ops

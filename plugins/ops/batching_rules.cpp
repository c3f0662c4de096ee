// SPDX-License-Identifier: Apache-2.0
#include "batching_rules.hpp"

#include <algorithm>

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

Value example_offsets(Batching& b, int64_t elements, size_t rank) {
  auto scalar = [&](int64_t number) { return b.reshape(b.ints({number}), {}); };
  Value count = b.reshape(b.cast(example_count(b), TN_I64), {});
  Value first = b.mul(b.op("Range", {scalar(0), count, scalar(1)}), scalar(elements));
  std::vector<int64_t> column(rank + 1, 1);
  column[0] = -1;
  return b.reshape(first, column);
}

int64_t known_example_count(Batching& b) {
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i) {
    Type type = b.batched(i) ? b.in(i).type() : Type{};
    if (type.ranked && type.dims[0] >= 0) return type.dims[0];
  }
  return -1;
}

namespace {
// x with these sizes, of which dims[at] is one example's: of nothing, -1 could be any size.
Value for_examples(Batching& b, Value x, std::vector<int64_t> dims, size_t at) {
  if (at >= dims.size()) return b.reshape(x, dims);
  if (std::count(dims.begin(), dims.end(), 0) == 0) {
    dims[at] = -1;
    return b.reshape(x, dims);
  }
  auto split = dims.begin() + static_cast<std::ptrdiff_t>(at);
  Value n = b.mul(example_count(b), b.ints({*split}));
  Value shape = b.op("Concat", {b.ints({dims.begin(), split}), n, b.ints({split + 1, dims.end()})},
                     {{"axis", 0}});
  return b.op("Reshape", {x, shape}, {{"allowzero", 1}});
}
}  // namespace

Value examples_as_rows(Batching& b, uint64_t i) {
  std::vector<int64_t> dims = b.fixed(b.of().input(i), b.of().type()).dims;
  return for_examples(b, for_all_examples(b, i), dims, 0);
}
Value rows_as_examples(Batching& b, Value y, uint64_t i) {
  std::vector<int64_t> dims = b.fixed(b.of().output(i), b.of().type()).dims;
  dims.insert(dims.begin(), 1);
  return for_examples(b, y, dims, 0);
}

namespace {
std::vector<int64_t> swapped_first(size_t rank) {
  std::vector<int64_t> perm;
  for (size_t i = 0; i < rank; ++i)
    perm.push_back(i == 0 ? 1 : i == 1 ? 0 : static_cast<int64_t>(i));
  return perm;
}
}  // namespace

Value examples_as_groups(Batching& b, uint64_t i) {
  std::vector<int64_t> dims = b.fixed(b.of().input(i), b.of().type()).dims;
  Value x = b.transpose(for_all_examples(b, i), swapped_first(dims.size() + 1));
  return for_examples(b, x, dims, 1);
}
Value groups_as_examples(Batching& b, Value y, uint64_t i) {
  std::vector<int64_t> dims = b.fixed(b.of().output(i), b.of().type()).dims;
  if (!dims.empty()) dims.insert(dims.begin() + 1, 1);
  return b.transpose(for_examples(b, y, dims, 1), swapped_first(dims.size()));
}

Status batch_convolution(Batching& b) {
  bool own = false;
  for (uint64_t i = 1; i < b.of().n_inputs(); ++i)
    own = own || b.batched(i);
  int64_t n = known_example_count(b);
  if (!own || n < 0) return unsupported("weights of one convolution, or a count that is not known");
  std::vector<Value> inputs{examples_as_groups(b, 0)};
  for (uint64_t i = 1; i < b.of().n_inputs(); ++i)
    inputs.push_back(b.of().input(i) ? examples_as_rows(b, i) : Value{});
  Node made = again(b, b.of(), inputs, {{"group", n * b.of().attr_int("group", 1)}});
  if (made) b.set(0, groups_as_examples(b, made.output()));
  return {};
}

Result<std::vector<int64_t>> stated_ints(Batching& b, uint64_t i) {
  std::optional<std::vector<int64_t>> known = known_ints(b.in(i));
  if (b.batched(i) || !known)
    return unsupported(cat("input ", i, ": expected a constant that is the same for all examples"));
  return *known;
}

std::vector<int64_t> shifted(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes)
    axis = positive_axis(axis, rank) + 1;
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

Status batch_by_rows(Batching& b) {
  std::vector<Value> inputs{examples_as_rows(b, 0)};
  for (uint64_t i = 1; i < b.of().n_inputs(); ++i) {
    if (b.batched(i)) return unsupported("only input 0 may have the new axis");
    inputs.push_back(b.in(i));
  }
  Node made = again(b, b.of(), inputs);
  for (uint64_t i = 0; made && i < b.of().n_outputs(); ++i)
    b.set(i, rows_as_examples(b, made.output(i), i));
  return {};
}

Status batch_all_by_axis(Batching& b) {
  std::vector<Value> inputs;
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i)
    inputs.push_back(for_all_examples(b, i));
  return by_axis(b, inputs);
}

}  // namespace tenon::ops

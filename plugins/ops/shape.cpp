// SPDX-License-Identifier: Apache-2.0
// Shape, Size and Range: tensors that are made of shapes.
#include <algorithm>
#include <cmath>

#include "tenon/wrapping.hpp"

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

struct Part {
  size_t begin, end;
};
Part part_of(Node node, size_t rank) {
  auto size = static_cast<int64_t>(rank);
  auto place = [size](int64_t at) {
    return static_cast<size_t>(std::clamp<int64_t>(at < 0 ? at + size : at, 0, size));
  };
  Part part{place(node.attr_int("start")), place(node.attr_int("end", size))};
  part.end = std::max(part.begin, part.end);
  return part;
}

Status shape_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, TN_I64, Dims(1));
  Part part = part_of(node, x.rank());
  Dims dims = dims_of(x);
  Dims out(dims.begin() + int64_t(part.begin), dims.begin() + int64_t(part.end));
  TN_CHECK(set_output(edit, node, 0, TN_I64, {int64_t(out.size())}));
  return set_contents(edit, node.output(), out);
}
Status shape_ref(const Call& call) {
  Part part = part_of(call.node(), call.shape(0).size());
  TN_TRY(out, call.out(0, TN_I64, {int64_t(part.end - part.begin)}));
  for (size_t i = part.begin; i < part.end; ++i)
    data_of<int64_t>(out)[i - part.begin] = call.shape(0)[i];
  return {};
}
Result<Node> shape_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 4)));
  return edit.add({.type = "Shape", .inputs = {x}, .attrs = {{"start", random.integer(-2, 1)}}});
}

Status size_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  TN_CHECK(set_output(edit, node, 0, TN_I64, {}));
  return set_contents(edit, node.output(),
                      x.ranked ? std::optional(Dims{product(dims_of(x))}) : std::nullopt);
}
Status size_ref(const Call& call) {
  TN_TRY(out, call.out(0, TN_I64, std::initializer_list<int64_t>{}));
  *data_of<int64_t>(out) = element_count(call.in(0));
  return {};
}
Result<Node> size_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 4)));
  return edit.add({.type = "Size", .inputs = {x}});
}

Dim first_of(Value value) {
  std::optional<Dims> dims = contents(value);
  return dims && dims->size() == 1 ? (*dims)[0] : Dim();
}

// More than any machine's addresses reach.
constexpr int64_t kMostNumbers = int64_t{1} << 48;

// How many numbers there are from start by delta below limit. Integers exactly: a difference of
// 64-bit numbers needs more than a double, and more than their own sign.
template <class W>
Result<int64_t> range_count(W start, W limit, W delta) {
  if (delta == W(0)) return invalid("delta: expected a number other than 0, got 0");
  if constexpr (std::is_integral_v<W>) {
    const bool is_up = delta > 0;
    if (is_up ? start >= limit : start <= limit) return 0;
    auto bits = [](W x) { return static_cast<uint64_t>(x); };
    const uint64_t way = is_up ? bits(limit) - bits(start) : bits(start) - bits(limit);
    const uint64_t step = is_up ? bits(delta) : 0 - bits(delta);
    const uint64_t count = way / step + (way % step != 0);
    if (count > kMostNumbers)
      return invalid(cat("limit: expected at most ", kMostNumbers, " numbers, got ", count));
    return static_cast<int64_t>(count);
  } else {
    const double steps = std::ceil((limit - start) / delta);
    if (!std::isfinite(steps))
      return invalid(cat("start, limit, delta: expected a finite number of steps, got ", steps));
    if (steps > static_cast<double>(kMostNumbers))
      return invalid(cat("limit: expected at most ", kMostNumbers, " numbers, got ", steps));
    return std::max<int64_t>(0, static_cast<int64_t>(steps));
  }
}

Status range_shape(EditView edit, Node node) {
  uint32_t dtype = node.input(0).dtype();
  Dim start = first_of(node.input(0)), limit = first_of(node.input(1));
  Dim delta = first_of(node.input(2)), count;
  if (delta.is(0)) return invalid("delta: expected a number other than 0, got 0");
  if (start.known() && limit.known() && delta.known()) {
    TN_TRY(n, range_count(*start.value, *limit.value, *delta.value));
    count = n;
  } else if (delta.known() && *delta.value > 0) {
    count = floor_divide(limit - start + Dim(*delta.value - 1), delta);
  }
  TN_CHECK(set_output(edit, node, 0, dtype, {count}));
  if (!count.known() || *count.value > 64 || !start.known() || !delta.known()) return {};
  Dims items;
  for (int64_t i = 0; i < *count.value; ++i)
    items.push_back(start + Dim(i) * delta);
  return set_contents(edit, node.output(), items);
}
Status range_ref(const Call& call) {
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    using W = Wide<T>;
    auto start = static_cast<W>(*call.data<T>(0)), limit = static_cast<W>(*call.data<T>(1));
    auto delta = static_cast<W>(*call.data<T>(2));
    TN_TRY(n, range_count(start, limit, delta));
    TN_TRY(out, call.out(0, call.dtype(0), {n}));
    for (int64_t i = 0; i < n; ++i)
      data_of<T>(out)[i] =
          static_cast<T>(wrapping_add(start, wrapping_mul(static_cast<W>(i), delta)));
    return {};
  });
}
Result<Node> range_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t start = random.integer(-5, 5), delta = random.coin() ? 2 : -1;
  std::vector<Value> inputs;
  for (int64_t number : {start, start + delta * random.integer(0, 5) + (delta > 0), delta}) {
    TN_TRY(value, edit.constant<int64_t>(TN_I64, {}, {number}));
    inputs.push_back(value);
  }
  return edit.add({.type = "Range", .inputs = inputs});
}

constexpr tn_op kShape = op_row({.type = "Shape",
                                 .since = 25,
                                 .traits = TN_OP_READS_SHAPE,
                                 .attributes = R"([{"name": "start", "type": "int", "default": 0},
                                                   {"name": "end", "type": "int"}])",
                                 .shape = shape<shape_shape, "x: any">,
                                 .cost = cost<[](Node) { return OpCost{}; }>,
                                 .ref = ref<shape_ref>,
                                 .sample = sample<shape_sample>,
                                 .coupling = "shape start=start end=end"});
constexpr tn_op kSize = op_row({.type = "Size",
                                .since = 25,
                                .traits = TN_OP_READS_SHAPE,
                                .shape = shape<size_shape, "x: any">,
                                .cost = cost<[](Node) { return OpCost{}; }>,
                                .ref = ref<size_ref>,
                                .sample = sample<size_sample>});
constexpr tn_op kRange =
    op_row({.type = "Range",
            .since = 27,
            .traits = TN_OP_DATA_SHAPE,
            .attributes = R"([{"name": "stash_type", "type": "dtype"}])",
            .shape = shape<range_shape, "start: T[one], limit: T[one], delta: T[one] ; T = number">,
            .cost = cost<move_cost>,
            .ref = ref<range_ref>,
            .sample = sample<range_sample>});

}  // namespace

TENON_OPS(shape, &kShape, &kSize, &kRange)

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
// Operators whose output has the bytes of input 0: Reshape, Flatten, Squeeze, Unsqueeze, Identity.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// The result of reshaping `in` to `wanted`, where 0 copies and -1 is what is left.
Result<Dims> reshaped(const Dims& in, Dims wanted, bool allow_zero) {
  size_t open = wanted.size();
  Dims used = in, given;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].is(0) && !allow_zero) {
      if (i >= in.size())
        return invalid(cat("shape: 0 at ", i, " copies an axis that is not there"));
      wanted[i] = in[i];
    }
    if (wanted[i].is(-1)) {
      if (open < wanted.size()) return invalid("shape: expected at most one -1, got more");
      open = i;
    } else {
      if (wanted[i].known() && *wanted[i].value < 0)
        return invalid(cat("shape: expected sizes from -1, got ", *wanted[i].value));
      given.push_back(wanted[i]);
    }
  }
  Dim all = product(in), rest = product(given);
  if (open < wanted.size()) {
    if (all.known() && rest.known() && (*rest.value == 0 || *all.value % *rest.value != 0))
      return invalid(cat("shape: ", *all.value, " elements do not divide into ", *rest.value));
    wanted[open] = quotient(in, given);
    return wanted;
  }
  if (all.known() && rest.known() && !(all == rest))
    return invalid(cat("shape: expected ", *all.value, " elements, got ", *rest.value));
  // One size that is not known follows from the others.
  auto nameless = std::find_if(wanted.begin(), wanted.end(),
                               [](const Dim& dim) { return !dim.known() && dim.symbol.empty(); });
  bool alone = std::count_if(wanted.begin(), wanted.end(), [](const Dim& dim) {
                 return !dim.known() && dim.symbol.empty();
               }) == 1;
  if (alone) {
    Dims others = wanted;
    others.erase(others.begin() + (nameless - wanted.begin()));
    if (!product(others).is(0)) *nameless = quotient(in, others);
  }
  return wanted;
}

Status reshape_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> wanted = contents(node.input(1));
  if (!wanted) return set_output(edit, node, 0, unranked(x.dtype));
  if (!x.ranked) {
    for (Dim& dim : *wanted)
      if (dim.is(0) || dim.is(-1)) dim = Dim();
    return set_output(edit, node, 0, x.dtype, *wanted);
  }
  TN_TRY(out, reshaped(dims_of(x), *wanted, node.attr_int("allowzero") != 0));
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return set_contents(edit, node.output(),
                      out.size() == 1 ? contents(node.input(0)) : std::nullopt);
}

std::vector<int64_t> numbers(const Dims& dims) {
  std::vector<int64_t> out;
  for (const Dim& dim : dims)
    out.push_back(dim.value.value_or(0));
  return out;
}
Dims as_dims(std::span<const int64_t> shape) {
  return {shape.begin(), shape.end()};
}

Status reshape_ref(const Call& call) {
  std::vector<int64_t> wanted = read_ints(call.in(1));
  TN_TRY(out,
         reshaped(as_dims(call.shape(0)), as_dims(wanted), call.node().attr_int("allowzero") != 0));
  return copy_as(call, numbers(out));
}

Result<Node> reshape_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t a = random.integer(1, 4), b = random.integer(1, 4), c = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {a, b, c}));
  std::vector<std::vector<int64_t>> forms{{-1}, {0, -1}, {c, -1, a}, {0, b * c}, {a, 1, -1, c}};
  TN_TRY(shape, edit.ints(forms[static_cast<size_t>(random.integer(0, 4))]));
  return edit.add({.type = "Reshape", .inputs = {x, shape}});
}

Result<Dims> flattened(const Dims& in, int64_t axis) {
  auto rank = static_cast<int64_t>(in.size());
  if (axis < -rank || axis > rank)
    return invalid(cat("axis: expected a number in -", rank, "..", rank, ", got ", axis));
  axis = positive_axis(axis, in.size());
  return Dims{product(Dims(in.begin(), in.begin() + axis)),
              product(Dims(in.begin() + axis, in.end()))};
}
Status flatten_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x.dtype, Dims(2));
  TN_TRY(out, flattened(dims_of(x), node.attr_int("axis", 1)));
  return set_output(edit, node, 0, x.dtype, out);
}
Status flatten_ref(const Call& call) {
  TN_TRY(out, flattened(as_dims(call.shape(0)), call.node().attr_int("axis", 1)));
  return copy_as(call, numbers(out));
}
Result<Node> flatten_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  TN_TRY(x, random.input(TN_F32, dims));
  int64_t rank = static_cast<int64_t>(dims.size());
  return edit.add(
      {.type = "Flatten", .inputs = {x}, .attrs = {{"axis", random.integer(-rank, rank)}}});
}

// axes empty: all that are 1, which must be known.
Result<Dims> squeezed(const Dims& in, const std::vector<int64_t>& axes, bool all) {
  std::vector<bool> gone(in.size(), false);
  for (int64_t stated : axes) {
    TN_TRY(axis, axis_in(stated, in.size(), "axes"));
    const Dim& dim = in[static_cast<size_t>(axis)];
    if (dim.known() && !dim.is(1))
      return invalid(cat("axes: expected size 1 at axis ", axis, ", got ", *dim.value));
    gone[static_cast<size_t>(axis)] = true;
  }
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!(gone[i] || (all && in[i].is(1)))) out.push_back(in[i]);
  }
  return out;
}
Status squeeze_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  bool all = !node.input(1);
  std::optional<std::vector<int64_t>> axes = known_ints(node.input(1));
  Dims in = dims_of(x);
  bool open = std::any_of(in.begin(), in.end(), [](const Dim& dim) { return !dim.known(); });
  if (!x.ranked || (!all && !axes) || (all && open))
    return set_output(edit, node, 0, unranked(x.dtype));
  TN_TRY(out, squeezed(in, axes.value_or(std::vector<int64_t>{}), all));
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return set_contents(edit, node.output(), contents(node.input(0)));
}
Status squeeze_ref(const Call& call) {
  bool all = !call.has(1);
  TN_TRY(out, squeezed(as_dims(call.shape(0)), all ? std::vector<int64_t>{} : read_ints(call.in(1)),
                       all));
  return copy_as(call, numbers(out));
}

Result<Dims> unsqueezed(const Dims& in, const std::vector<int64_t>& axes) {
  std::vector<bool> added(in.size() + axes.size(), false);
  for (int64_t stated : axes) {
    TN_TRY(axis, axis_in(stated, added.size(), "axes"));
    if (added[static_cast<size_t>(axis)]) return invalid(cat("axes: ", axis, " is there twice"));
    added[static_cast<size_t>(axis)] = true;
  }
  Dims out;
  for (size_t i = 0, next = 0; i < added.size(); ++i)
    out.push_back(added[i] ? Dim(1) : in[next++]);
  return out;
}
Status unsqueeze_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<std::vector<int64_t>> axes = known_ints(node.input(1));
  if (!x.ranked || !axes) return set_output(edit, node, 0, unranked(x.dtype));
  TN_TRY(out, unsqueezed(dims_of(x), *axes));
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return set_contents(edit, node.output(),
                      out.size() <= 1 ? contents(node.input(0)) : std::nullopt);
}
Status unsqueeze_ref(const Call& call) {
  TN_TRY(out, unsqueezed(as_dims(call.shape(0)), read_ints(call.in(1))));
  return copy_as(call, numbers(out));
}

Result<Node> squeeze_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 1, random.integer(1, 3), 1}));
  TN_TRY(axes, edit.ints(random.coin() ? std::vector<int64_t>{1, -1} : std::vector<int64_t>{3}));
  return edit.add({.type = "Squeeze", .inputs = {x, axes}});
}
Result<Node> unsqueeze_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 3)));
  TN_TRY(axes, edit.ints(random.coin() ? std::vector<int64_t>{0, -1} : std::vector<int64_t>{1}));
  return edit.add({.type = "Unsqueeze", .inputs = {x, axes}});
}

Status identity_ref(const Call& call) {
  return copy_as(call, call.shape(0));
}
Result<Node> identity_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 4)));
  return edit.add({.type = "Identity", .inputs = {x}});
}

constexpr tn_op view_row(const char* type,
                         uint64_t since,
                         const char* attributes,
                         decltype(tn_op::shape) shape_column,
                         decltype(tn_op::ref) ref_column,
                         decltype(tn_op::sample) sample_column,
                         const char* axes = "",
                         const char* coupling = "") {
  return op_row({.type = type,
                 .since = since,
                 .traits = TN_OP_VIEW,
                 .axes = axes,
                 .attributes = attributes,
                 .quant = "same_scale",
                 .shape = shape_column,
                 .cost = cost<move_cost>,
                 .ref = ref_column,
                 .sample = sample_column,
                 .coupling = coupling});
}

constexpr tn_op kReshape = view_row("Reshape",
                                    25,
                                    R"([{"name": "allowzero", "type": "int", "default": 0}])",
                                    shape<reshape_shape, "x: any, shape: int[n]">,
                                    ref<reshape_ref>,
                                    sample<reshape_sample>,
                                    "",
                                    "view sizes=1 zero=allowzero");
constexpr tn_op kFlatten = view_row("Flatten",
                                    25,
                                    R"([{"name": "axis", "type": "int", "default": 1}])",
                                    shape<flatten_shape, "x: any">,
                                    ref<flatten_ref>,
                                    sample<flatten_sample>);
constexpr tn_op kSqueeze = view_row("Squeeze",
                                    25,
                                    "[]",
                                    shape<squeeze_shape, "x: any, axes: int?">,
                                    ref<squeeze_ref>,
                                    sample<squeeze_sample>,
                                    "",
                                    "view axes=1");
constexpr tn_op kUnsqueeze = view_row("Unsqueeze",
                                      25,
                                      "[]",
                                      shape<unsqueeze_shape, "x: any, axes: int">,
                                      ref<unsqueeze_ref>,
                                      sample<unsqueeze_sample>);
constexpr tn_op kIdentity = view_row("Identity",
                                     25,
                                     "[]",
                                     shape<same_as_input, "x: any">,
                                     ref<identity_ref>,
                                     sample<identity_sample>,
                                     "s.. -> s..");

}  // namespace

TENON_OPS(reshape, &kReshape, &kFlatten, &kSqueeze, &kUnsqueeze, &kIdentity)

}  // namespace tenon::ops

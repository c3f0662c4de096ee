// SPDX-License-Identifier: Apache-2.0
// Pad: constant, reflect, edge and wrap; negative pads cut.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

struct Pads {
  std::vector<int64_t> begin, end;  // by axis
};

Result<Pads> pads_of(const std::vector<int64_t>& pads,
                     const std::vector<int64_t>& axes,
                     bool has_axes,
                     size_t rank) {
  Pads out{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  size_t n = has_axes ? axes.size() : rank;
  if (pads.size() != n * 2)
    return invalid(cat("pads: expected ", n * 2, " numbers, got ", pads.size()));
  for (size_t i = 0; i < n; ++i) {
    TN_TRY(axis, axis_in(has_axes ? axes[i] : static_cast<int64_t>(i), rank, "axes"));
    out.begin[static_cast<size_t>(axis)] = pads[i];
    out.end[static_cast<size_t>(axis)] = pads[i + n];
  }
  constexpr int64_t kMost = int64_t{1} << 48;  // nothing is multiplied with them
  TN_CHECK(expect_moderate("pads", out.begin, -kMost, kMost));
  TN_CHECK(expect_moderate("pads", out.end, -kMost, kMost));
  return out;
}

Status pad_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  auto pads = known_ints(node.input(1)), axes = known_ints(node.input(3));
  if (!pads || (node.input(3) && !axes)) return set_output(edit, node, 0, x.dtype, Dims(x.rank()));
  TN_TRY(p, pads_of(*pads, axes.value_or(std::vector<int64_t>{}), bool(node.input(3)), x.rank()));
  Dims out = dims_of(x);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = out[i] + Dim(p.begin[i]) + Dim(p.end[i]);
    if (out[i].known() && *out[i].value < 0)
      return invalid(cat("pads: axis ", i, " would have the size ", *out[i].value));
  }
  return set_output(edit, node, 0, x.dtype, out);
}

enum class Mode { kConstant, kReflect, kEdge, kWrap };
Result<Mode> mode_of(Node node) {
  std::string_view mode = node.attr_text("mode", "constant");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "edge") return Mode::kEdge;
  if (mode == "wrap") return Mode::kWrap;
  return invalid(cat("mode: expected one of constant, reflect, edge, wrap, got '", mode, "'"));
}

// Where entry i of a padded axis comes from; -1: the fill value. What negative pads cut is gone
// before the others repeat what is left, as in ONNX Runtime.
int64_t source_of(Mode mode, int64_t i, int64_t whole, int64_t begin, int64_t end) {
  int64_t cut = std::max<int64_t>(0, -begin), size = whole - cut - std::max<int64_t>(0, -end);
  int64_t at = i - std::max<int64_t>(0, begin);
  if (at >= 0 && at < size) return cut + at;
  if (mode == Mode::kConstant || size <= 0) return -1;
  if (mode == Mode::kEdge) return cut + std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == Mode::kWrap ? size : std::max<int64_t>(1, 2 * (size - 1));
  int64_t place = (at % period + period) % period;
  return cut + (mode == Mode::kReflect && place >= size ? period - place : place);
}

Status pad_ref(const Call& call) {
  std::vector<int64_t> axes, shape = to_vector(call.shape(0));
  if (call.has(3)) axes = read_ints(call.in(3));
  TN_TRY(p, pads_of(read_ints(call.in(1)), axes, call.has(3), shape.size()));
  TN_TRY(mode, mode_of(call.node()));
  std::vector<int64_t> strides = dense_strides(shape), out_shape = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    out_shape[d] += p.begin[d] + p.end[d];
    if (out_shape[d] < 0) return invalid(cat("pads: axis ", d, " would have a negative size"));
  }
  TN_TRY(out, call.out(0, call.dtype(0), out_shape));
  // Offsets into x for each coordinate of each axis; behind the result, which says no to a size
  // that there is no memory for.
  std::vector<std::vector<int64_t>> offsets(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    for (int64_t i = 0; i < out_shape[d]; ++i) {
      int64_t from = source_of(mode, i, shape[d], p.begin[d], p.end[d]);
      offsets[d].push_back(from < 0 ? -1 : from * strides[d]);
    }
  }
  Cells from(call.in(0)), to(out);
  std::vector<char> zero(16, 0);
  std::optional<Cells> fill;
  if (call.has(2)) fill.emplace(call.in(2));
  Odometer at(out_shape);
  for (int64_t i = 0, n = element_count(out_shape); i < n; ++i, at.next()) {
    int64_t source = 0;
    for (size_t d = 0; d < shape.size() && source >= 0; ++d) {
      int64_t offset = offsets[d][static_cast<size_t>(at[d])];
      source = offset < 0 ? -1 : source + offset;
    }
    const char* cell = source >= 0 ? from.at(source) : fill ? fill->at(0) : zero.data();
    std::memcpy(to.at(i), cell, to.size());
  }
  to.flush();
  return {};
}

Result<Node> pad_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4), pads;
  for (int64_t& dim : dims)
    dim += 2;
  for (size_t i = 0; i < dims.size() * 2; ++i)
    pads.push_back(random.integer(-1, 2));
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(amounts, edit.ints(pads));
  constexpr const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
  return edit.add(
      {.type = "Pad", .inputs = {x, amounts}, .attrs = {{"mode", kModes[random.integer(0, 3)]}}});
}

// Pads that crop y to the elements of x.
std::vector<int64_t> inner_pads(const Type& x, const Pads& p) {
  std::vector<int64_t> begins, ends;
  for (size_t d = 0; d < x.rank(); ++d) {
    int64_t begin = std::max<int64_t>(0, p.begin[d]), end = std::max<int64_t>(0, p.end[d]);
    int64_t size = x.dims[d] + p.begin[d] + p.end[d];  // of y, which may have nothing of x
    begins.push_back(-std::min(begin, size));
    ends.push_back(-std::min(end, size - std::min(begin, size)));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

Status pad_vjp(Gradients& g) {
  TN_TRY(mode, mode_of(g.of()));
  Type x = g.ranked(g.in(0), "Pad");
  Value dy = g.cotangent();
  auto pads = known_ints(g.in(1)), axes = known_ints(g.in(3));
  if (!pads || (g.in(3) && !axes)) return unsupported("pads must be constants for a gradient");
  TN_TRY(p, pads_of(*pads, axes.value_or(std::vector<int64_t>{}), bool(g.in(3)), x.rank()));
  std::vector<int64_t> back = p.begin;
  back.insert(back.end(), p.end.begin(), p.end.end());
  for (int64_t& pad : back)
    pad = -pad;
  if (mode == Mode::kConstant) {
    Value dx = g.op("Pad", {dy, g.ints(back)});
    g.set(0, dx);
    if (!g.wanted(2)) return {};
    auto all = [&](Value v) { return g.op("ReduceSum", {v}, {{"keepdims", 0}}); };
    // dy where y is not x: what a crop of x leaves out has taken nothing from the value.
    bool crops = std::any_of(back.begin(), back.end(), [](int64_t pad) { return pad > 0; });
    Value of_x = crops ? g.op("Pad", {dy, g.ints(inner_pads(g.fixed(g.in(0), "Pad"), p))}) : dx;
    g.set(2, g.reshape_like(g.sub(all(dy), all(of_x)), g.in(2)));
    return {};
  }
  Type fixed = g.fixed(g.in(0), "Pad");
  for (size_t d = 0; d < fixed.rank(); ++d) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < fixed.dims[d] + p.begin[d] + p.end[d]; ++i)
      places.push_back(source_of(mode, i, fixed.dims[d], p.begin[d], p.end[d]));
    if (p.begin[d] != 0 || p.end[d] != 0) dy = scatter_along(g, dy, places, d, fixed.dims[d]);
  }
  g.set(0, dy);
  return {};
}

Status pad_batch(Batching& b) {
  size_t rank = b.ranked(b.of().input(0), "Pad").rank();
  if (b.batched(1) || b.batched(2))
    return unsupported("pads and value: expected the same for all examples");
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i)
    axes[i] = static_cast<int64_t>(i);
  if (b.in(3)) {
    TN_TRY(stated, stated_ints(b, 3));
    axes = stated;
  }
  Node made = again(b, b.of(), {b.in(0), b.in(1), b.in(2), b.ints(shifted(axes, rank))});
  if (made) b.set(0, made.output());
  return {};
}

constexpr tn_op kPad =
    op_row({.type = "Pad",
            .since = 25,
            .attributes = R"([{"name": "mode", "type": "string", "default": "constant"}])",
            .quant = "same_scale",
            .shape = shape<pad_shape, "x: T, pads: int[n], value: T[one]?, axes: int[m]?">,
            .cost = cost<move_cost>,
            .ref = ref<pad_ref>,
            .sample = sample<pad_sample>,
            .vjp = vjp<pad_vjp>,
            .vjp_inputs = 10,
            .vjp_outputs = 0,
            .batch = batch<pad_batch>,
            .coupling = "pad pads=1 axes=3"});

}  // namespace

TENON_OPS(pad, &kPad)

}  // namespace tenon::ops

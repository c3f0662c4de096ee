// SPDX-License-Identifier: Apache-2.0
// The Reduce family: axes as an optional second input, keepdims, noop_with_empty_axes.
#include <algorithm>
#include <limits>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "reductions.hpp"
#include "roots.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using namespace reductions;

struct Reduction {
  std::vector<bool> reduced;  // by axis
  bool keep = true;
  bool nothing = false;  // pass the input through
};

// stated: the axes, or nothing where they are absent.
Result<Reduction> reduction_of(Node node, std::vector<int64_t> stated, size_t rank) {
  Reduction r{std::vector<bool>(rank, false), node.attr_int("keepdims", 1) != 0};
  if (stated.empty()) {
    r.nothing = node.attr_int("noop_with_empty_axes") != 0;
    r.reduced.assign(rank, !r.nothing);
  }
  for (int64_t axis : stated) {
    TN_TRY(at, axis_in(axis, rank, "axes"));
    r.reduced[static_cast<size_t>(at)] = true;
  }
  return r;
}

Status reduce_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<std::vector<int64_t>> axes = known_ints(node.input(1));
  bool open = node.input(1) && !axes;
  if (!x.ranked || (open && node.attr_int("keepdims", 1) == 0))
    return set_output(edit, node, 0, unranked(x.dtype));
  Dims in = dims_of(x), out;
  if (open) return set_output(edit, node, 0, x.dtype, Dims(in.size()));
  TN_TRY(r, reduction_of(node, axes.value_or(std::vector<int64_t>{}), in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    if (!r.reduced[i])
      out.push_back(in[i]);
    else if (r.keep)
      out.push_back(1);
  }
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  std::optional<Dims> held = contents(node.input(0));
  if (!node.is("ReduceProd") || !held || out.size() > 1) return {};
  return set_contents(edit, node.output(), Dims{product(*held)});
}

// Where the elements of one result lie: first + inside.
struct Plan {
  std::vector<int64_t> out_shape, outer_shape, outer_strides, inside;
};
Plan plan_of(std::span<const int64_t> shape, const Reduction& r) {
  Plan plan;
  std::vector<int64_t> strides = dense_strides(shape), inner_shape, inner_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    (r.reduced[d] ? inner_shape : plan.outer_shape).push_back(shape[d]);
    (r.reduced[d] ? inner_strides : plan.outer_strides).push_back(strides[d]);
    if (!r.reduced[d])
      plan.out_shape.push_back(shape[d]);
    else if (r.keep)
      plan.out_shape.push_back(1);
  }
  Odometer at(inner_shape);
  plan.inside.resize(static_cast<size_t>(element_count(inner_shape)));
  for (int64_t& offset : plan.inside) {
    offset = at.dot(inner_strides);
    at.next();
  }
  return plan;
}

template <class How, class T>
T reduce_one(const T* x, const std::vector<int64_t>& inside) {
  using A = std::conditional_t<std::is_same_v<T, bool>, int64_t, Wide<T>>;
  A sum = How::template first<A>();
  for (int64_t offset : inside)
    sum = How::template join<A>(sum, static_cast<A>(x[offset]));
  if (inside.empty() && !kIsFloat<T>) {
    // The lowest and highest of an empty integer set are those of its own type.
    if constexpr (std::is_same_v<How, Max>) return std::numeric_limits<T>::lowest();
    if constexpr (std::is_same_v<How, Min>) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(How::template last<A>(sum, static_cast<double>(inside.size())));
}

// log(sum(exp(x))), shifted by the maximum so that exp() stays in range.
struct LogSumExp {};
template <class T>
T reduce_log_sum_exp(const T* x, const std::vector<int64_t>& inside) {
  double most = -HUGE_VAL, sum = 0;
  for (int64_t offset : inside)
    most = std::max(most, static_cast<double>(x[offset]));
  double shift = std::isfinite(most) ? most : 0;
  for (int64_t offset : inside)
    sum += std::exp(static_cast<double>(x[offset]) - shift);
  return static_cast<T>(std::log(sum) + shift);
}

template <class How>
Status reduce_ref(const Call& call) {
  std::vector<int64_t> axes;
  if (call.has(1)) axes = read_ints(call.in(1));
  TN_TRY(r, reduction_of(call.node(), axes, call.shape(0).size()));
  Plan plan = plan_of(call.shape(0), r);
  TN_TRY(out, call.out(0, call.dtype(0), plan.out_shape));
  constexpr unsigned kSet = std::is_same_v<How, Max> || std::is_same_v<How, Min> ? kAll : kNumeric;
  return dispatch<kSet>(call.dtype(0), [&]<class T>() -> Status {
    auto n = static_cast<uint64_t>(element_count(plan.outer_shape));
    uint64_t grain = 1 + 4096 / (plan.inside.size() + 1);
    parallel_for(call.ctx(), n, grain, [&](uint64_t begin, uint64_t end) {
      Odometer at(plan.outer_shape, static_cast<int64_t>(begin));
      for (uint64_t i = begin; i < end; ++i, at.next()) {
        const T* x = call.data<T>(0) + at.dot(plan.outer_strides);
        if constexpr (std::is_same_v<How, LogSumExp>) {
          data_of<T>(out)[i] = reduce_log_sum_exp(x, plan.inside);
        } else {
          data_of<T>(out)[i] = reduce_one<How>(x, plan.inside);
        }
      }
    });
    return {};
  });
}

Result<Node> reduce_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  auto rank = static_cast<int64_t>(dims.size());
  bool logarithm = type == "ReduceLogSum";
  std::vector<Value> inputs;
  if (logarithm) {  // of positive numbers only
    TN_TRY(x, random.input(TN_F32, dims));
    TN_TRY(squared, edit.op("Exp", {x}));
    inputs.push_back(squared);
  } else {
    TN_TRY(x, random.input(TN_F32, dims));
    inputs.push_back(x);
  }
  if (random.integer(0, 3) > 0) {
    TN_TRY(axes, edit.ints({random.integer(-rank, rank - 1)}));
    inputs.push_back(axes);
  }
  return edit.add({.type = type, .inputs = inputs, .attrs = {{"keepdims", random.integer(0, 1)}}});
}

// A result, or its gradient, with the reduced axes as axes of one.
Value kept(Gradients& g, Value reduced) {
  bool keeps = g.of().attr_int("keepdims", 1) != 0;
  return keeps || !g.in(1) ? reduced : g.op("Unsqueeze", {reduced, g.in(1)});
}
// A type that holds counts of elements: float16 ends at 65,504, and bfloat16 has 8 bits.
uint32_t counting_type(uint32_t dtype) {
  return TN_DTYPE_BITS(dtype) < 32 ? static_cast<uint32_t>(TN_F32) : dtype;
}
// How many elements went into one, as a number of this type.
Value how_many(Gradients& g, uint32_t dtype) {
  Type x = g.in(0).type(), y = g.out().type();
  if (x.is_static() && y.is_static() && y.elements() > 0)
    return g.number(static_cast<double>(x.elements() / y.elements()), dtype);
  return g.cast(g.div(g.op("Size", {g.in(0)}), g.op("Size", {g.out()})), dtype);
}
Status sum_vjp(Gradients& g) {
  g.set(0, g.expand_like(kept(g, g.cotangent()), g.in(0)));
  return {};
}
Status mean_vjp(Gradients& g) {
  const uint32_t dtype = g.in(0).dtype(), wide = counting_type(dtype);
  Value share = g.div(g.cast(kept(g, g.cotangent()), wide), how_many(g, wide));
  // Expanded before it is narrowed: the transposed form, a product with slopes, adds up and divides
  // before it narrows.
  g.set(0, g.cast(g.expand_like(share, g.in(0)), dtype));
  return {};
}
// Elements that are equally extreme share.
Status extreme_vjp(Gradients& g) {
  const uint32_t dtype = g.in(0).dtype(), wide = counting_type(dtype);
  Value hit = g.cast(g.op("Equal", {g.in(0), kept(g, g.out())}), wide);
  std::vector<Value> inputs{hit};
  if (g.in(1)) inputs.push_back(g.in(1));
  Value hits = g.op("ReduceSum", inputs,
                    {{"noop_with_empty_axes", g.of().attr_int("noop_with_empty_axes")}});
  Value share = g.mul(g.div(hit, hits), g.cast(kept(g, g.cotangent()), wide));
  g.set(0, g.cast(share, dtype));
  return {};
}
// Without a division: the elements before one times those after it, with the reduced axes as one.
Status product_vjp(Gradients& g) {
  Type x = g.fixed(g.in(0), "ReduceProd");
  std::optional<std::vector<int64_t>> axes = known_ints(g.in(1));
  if (g.in(1) && !axes) return unsupported("axes: expected constants for a gradient");
  TN_TRY(r, reduction_of(g.of(), axes.value_or(std::vector<int64_t>{}), x.rank()));
  std::vector<int64_t> perm, back(x.rank()), dims, flat{1, 1};
  for (bool inner : {false, true})
    for (size_t d = 0; d < x.rank(); ++d)
      if (r.reduced[d] == inner) perm.push_back(static_cast<int64_t>(d));
  for (size_t i = 0; i < perm.size(); ++i) {
    auto d = static_cast<size_t>(perm[i]);
    back[d] = static_cast<int64_t>(i);
    dims.push_back(x.dims[d]);
    flat[r.reduced[d]] *= x.dims[d];
  }
  Value rows = g.reshape(g.transpose(g.in(0), perm), flat);
  auto others = [&](int64_t reverse) {
    return g.op("CumProd", {rows, g.number(1, TN_I64)}, {{"exclusive", 1}, {"reverse", reverse}});
  };
  Value product = g.transpose(g.reshape(g.mul(others(0), others(1)), dims), back);
  g.set(0, g.mul(product, kept(g, g.cotangent())));
  return {};
}

// All axes of one example, or the stated ones: of no axes at all the meaning depends on an
// attribute.
Status reduce_batch(Batching& b) {
  size_t rank = b.ranked(b.of().input(0), b.of().type()).rank();
  std::vector<int64_t> axes;
  if (b.in(1)) {
    TN_TRY(stated, stated_ints(b, 1));
    axes = stated;
  }
  bool all = axes.empty() && b.of().attr_int("noop_with_empty_axes") == 0;
  for (size_t i = 0; all && i < rank; ++i)
    axes.push_back(static_cast<int64_t>(i));
  Node made =
      again(b, b.of(), {b.in(0), b.ints(shifted(axes, rank))}, {{"noop_with_empty_axes", 1}});
  if (made) b.set(0, made.output());
  return {};
}

// The others are sums of something, then something of a sum.
Result<std::vector<Value>> reduce_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0), y;
  auto reduce = [&](std::string_view type, Value of, int64_t keep) {
    std::vector<Value> inputs{of};
    if (node.input(1)) inputs.push_back(node.input(1));
    return b.op(
        type, inputs,
        {{"keepdims", keep}, {"noop_with_empty_axes", node.attr_int("noop_with_empty_axes")}});
  };
  auto shift = [&](int64_t keep) {  // the maximum, where that is finite
    Value most = reduce("ReduceMax", x, keep), zero = b.number(0, x.dtype());
    Value is_finite = b.op("Equal", {b.sub(most, most), zero});
    Node held = b.node({.type = "StopGradient",
                        .inputs = {b.op("Where", {is_finite, most, zero})},
                        .domain = "tenon"});
    return held ? held.output() : Value{};
  };
  int64_t keep = node.attr_int("keepdims", 1);
  if (node.is("ReduceSumSquare")) {
    y = reduce("ReduceSum", b.mul(x, x), keep);
  } else if (node.is("ReduceL1")) {
    y = reduce("ReduceSum", b.op("Abs", {x}), keep);
  } else if (node.is("ReduceL2")) {
    y = root(b, reduce("ReduceSum", b.mul(x, x), keep));
  } else if (node.is("ReduceLogSum")) {
    y = b.op("Log", {reduce("ReduceSum", x, keep)});
  } else {  // shifted by the maximum, which is a constant to gradients
    Value sum = reduce("ReduceSum", b.op("Exp", {b.sub(x, shift(1))}), keep);
    y = b.add(b.op("Log", {sum}), shift(keep));
  }
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

constexpr const char* kNames[] = {"ReduceSum",    "ReduceMean",      "ReduceMax", "ReduceMin",
                                  "ReduceProd",   "ReduceSumSquare", "ReduceL1",  "ReduceL2",
                                  "ReduceLogSum", "ReduceLogSumExp"};
template <size_t kIndex>
Result<Node> sample_of(EditView edit, uint64_t seed) {
  return reduce_sample(edit, seed, kNames[kIndex]);
}

OpCost reduce_cost(Node node) {
  Type x = node.input(0).type();
  return {x.is_static() ? static_cast<double>(x.elements()) : 0, node_bytes(node)};
}

template <size_t kIndex, class How>
constexpr tn_op reduce_row(uint64_t since, const char* quant = "", const char* cast = "cuda=fp32") {
  return op_row({.type = kNames[kIndex],
                 .since = since,
                 .attributes = R"([{"name": "keepdims", "type": "int", "default": 1},
                         {"name": "noop_with_empty_axes", "type": "int", "default": 0}])",
                 .quant = quant,
                 .shape = shape<reduce_shape, "x: number|bool, axes: int?">,
                 .decompose = decompose<reduce_decompose>,
                 .cost = cost<reduce_cost>,
                 .ref = ref<reduce_ref<How>>,
                 .sample = sample<sample_of<kIndex>>,
                 .vjp_inputs = 0,
                 .vjp_outputs = 0,
                 .batch = batch<reduce_batch>,
                 .cast = cast,
                 .coupling = "reduce axes=1 keepdims=keepdims noop=noop_with_empty_axes"});
}

// Those with a gradient of their own are what the others are made of.
constexpr tn_op with_vjp(tn_op row, decltype(tn_op::vjp) column, uint64_t reads = 0) {
  row.decompose = nullptr;
  row.vjp = column;
  row.vjp_inputs = reads;
  row.vjp_outputs = reads;
  return row;
}

constexpr tn_op kSum = with_vjp(reduce_row<0, Sum>(13, "requant"), vjp<sum_vjp>);
constexpr tn_op kMean = with_vjp(reduce_row<1, Mean>(18, "requant", ""), vjp<mean_vjp>);
constexpr tn_op kMax = with_vjp(reduce_row<2, Max>(20, "same_scale", ""), vjp<extreme_vjp>, 1);
constexpr tn_op kMin = with_vjp(reduce_row<3, Min>(20, "same_scale", ""), vjp<extreme_vjp>, 1);
constexpr tn_op kProd =
    with_vjp(reduce_row<4, Prod>(18, "", "cpu=fp32 cuda=fp32"), vjp<product_vjp>, 1);
constexpr tn_op kSquares = reduce_row<5, SumSquare>(18);
constexpr tn_op kL1 = reduce_row<6, Norm1>(18);
constexpr tn_op kL2 = reduce_row<7, Norm2>(18);
constexpr tn_op kLogSum = reduce_row<8, LogSum>(18);
constexpr tn_op kLogExp = reduce_row<9, LogSumExp>(18);

}  // namespace

TENON_OPS(reduce, &kSum, &kMean, &kMax, &kMin, &kProd, &kSquares, &kL1, &kL2, &kLogSum, &kLogExp)

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
// The Reduce family: axes as an optional second input, keepdims, noop_with_empty_axes.
#include <algorithm>
#include <limits>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

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

// One reduction: how elements join, and how the result leaves. Acc is double for floats, and 64-bit
// integers for integers.
struct Sum {
  template <class A>
  static A first() {
    return 0;
  }
  template <class A>
  static A join(A a, A x) {
    return a + x;
  }
  template <class A>
  static A last(A a, double) {
    return a;
  }
};
struct SumSquare : Sum {
  template <class A>
  static A join(A a, A x) {
    return a + x * x;
  }
};
struct Norm1 : Sum {
  template <class A>
  static A join(A a, A x) {
    return x < A(0) ? a - x : a + x;
  }
};
struct Norm2 : SumSquare {
  template <class A>
  static A last(A a, double) {
    return static_cast<A>(std::sqrt(double(a)));
  }
};
struct LogSum : Sum {
  template <class A>
  static A last(A a, double) {
    return static_cast<A>(std::log(double(a)));
  }
};
struct Mean : Sum {
  template <class A>
  static A last(A a, double n) {
    if constexpr (std::is_integral_v<A>)
      return n == 0 ? A(0) : a / static_cast<A>(n);
    else
      return a / n;
  }
};
struct Prod : Sum {
  template <class A>
  static A first() {
    return 1;
  }
  template <class A>
  static A join(A a, A x) {
    return a * x;
  }
};
struct Max : Sum {
  template <class A>
  static A first() {
    return std::is_integral_v<A> ? std::numeric_limits<A>::lowest()
                                 : -std::numeric_limits<A>::infinity();
  }
  template <class A>
  static A join(A a, A x) {
    return x > a || x != x ? x : a;
  }
};
struct Min : Sum {
  template <class A>
  static A first() {
    return std::is_integral_v<A> ? std::numeric_limits<A>::max()
                                 : std::numeric_limits<A>::infinity();
  }
  template <class A>
  static A join(A a, A x) {
    return x < a || x != x ? x : a;
  }
};

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
constexpr tn_op reduce_row(uint64_t since, const char* quant = "") {
  return op_row({.type = kNames[kIndex],
                 .since = since,
                 .attributes = R"([{"name": "keepdims", "type": "int", "default": 1},
                         {"name": "noop_with_empty_axes", "type": "int", "default": 0}])",
                 .quant = quant,
                 .shape = shape<reduce_shape>,
                 .cost = cost<reduce_cost>,
                 .ref = ref<reduce_ref<How>>,
                 .sample = sample<sample_of<kIndex>>});
}

constexpr tn_op kSum = reduce_row<0, Sum>(13, "requant");
constexpr tn_op kMean = reduce_row<1, Mean>(18, "requant");
constexpr tn_op kMax = reduce_row<2, Max>(20, "same_scale");
constexpr tn_op kMin = reduce_row<3, Min>(20, "same_scale");
constexpr tn_op kProd = reduce_row<4, Prod>(18);
constexpr tn_op kSumSquare = reduce_row<5, SumSquare>(18);
constexpr tn_op kL1 = reduce_row<6, Norm1>(18);
constexpr tn_op kL2 = reduce_row<7, Norm2>(18);
constexpr tn_op kLogSum = reduce_row<8, LogSum>(18);
constexpr tn_op kLogSumExp = reduce_row<9, LogSumExp>(18);

}  // namespace

TENON_OPS(
    reduce, &kSum, &kMean, &kMax, &kMin, &kProd, &kSumSquare, &kL1, &kL2, &kLogSum, &kLogSumExp)

}  // namespace tenon::ops

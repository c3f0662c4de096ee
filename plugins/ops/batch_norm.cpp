// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: with given statistics, or (training_mode) with the batch's own.
#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status batch_norm_shape(EditView edit, Node node) {
  if (node.n_outputs() > 1 && node.attr_int("training_mode") == 0)
    return invalid(cat("expected 1 output without training_mode, got ", node.n_outputs()));
  TN_CHECK(set_output(edit, node, 0, node.input(0).type()));
  Type mean = node.input(3).type();
  TN_CHECK(set_output(edit, node, 1, mean));
  return set_output(edit, node, 2, mean);
}

struct Statistics {
  std::vector<double> mean, variance;
};

// Over batch and space, per channel; the variance is the population's.
template <class T>
Statistics statistics_of(const T* x, const AxisSplit& split) {
  Statistics s{std::vector<double>(size_t(split.size)), std::vector<double>(size_t(split.size))};
  auto count = static_cast<double>(split.outer * split.inner);
  auto sum = [&](std::vector<double>& to, auto&& of) {
    for (int64_t i = 0; i < split.outer * split.size * split.inner; ++i) {
      auto channel = static_cast<size_t>(i / split.inner % split.size);
      to[channel] += of(static_cast<double>(x[i]), channel) / count;
    }
  };
  sum(s.mean, [](double value, size_t) { return value; });
  sum(s.variance, [&](double value, size_t channel) {
    return (value - s.mean[channel]) * (value - s.mean[channel]);
  });
  return s;
}

// Runs of the statistics: out = running*momentum + batch*(1 - momentum).
Status write_running(const Call& call,
                     uint64_t i,
                     double momentum,
                     const std::vector<double>& now) {
  if (call.node().n_outputs() <= i) return {};
  uint64_t from = i + 2;
  TN_TRY(out, call.out(i, call.dtype(from), call.shape(from)));
  return dispatch<kFloats>(call.dtype(from), [&]<class U>() -> Status {
    for (size_t c = 0; c < now.size(); ++c) {
      double before = static_cast<double>(call.data<U>(from)[c]);
      data_of<U>(out)[c] = static_cast<U>(before * momentum + now[c] * (1 - momentum));
    }
    return {};
  });
}

template <class U>
std::vector<double> doubles(const Call& call, uint64_t i) {
  const U* data = call.data<U>(i);
  std::vector<double> out(static_cast<size_t>(element_count(call.in(i))));
  for (size_t c = 0; c < out.size(); ++c)
    out[c] = static_cast<double>(data[c]);
  return out;
}

Status batch_norm_ref(const Call& call) {
  if (call.shape(0).size() < 2) return invalid("x: expected rank from 2");
  AxisSplit split(call.shape(0), 1);
  for (uint64_t i = 1; i < 5; ++i) {
    if (element_count(call.in(i)) != split.size) {
      return invalid(cat("input ", i, ": expected ", split.size, " elements, got ",
                         element_count(call.in(i))));
    }
  }
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  Statistics s;
  std::vector<double> scale, bias;
  TN_CHECK(dispatch<kFloats>(call.dtype(1), [&]<class U>() -> Status {
    scale = doubles<U>(call, 1);
    bias = doubles<U>(call, 2);
    return {};
  }));
  TN_CHECK(dispatch<kFloats>(call.dtype(3), [&]<class U>() -> Status {
    s = {doubles<U>(call, 3), doubles<U>(call, 4)};
    return {};
  }));
  double epsilon = call.node().attr_float("epsilon", 1e-5);
  bool training = call.node().attr_int("training_mode") != 0;
  TN_CHECK(dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    if (training) s = statistics_of(x, split);
    auto planes = static_cast<uint64_t>(split.outer * split.size);
    parallel_for(call.ctx(), planes, 8, [&](uint64_t begin, uint64_t end) {
      for (uint64_t plane = begin; plane < end; ++plane) {
        size_t c = plane % static_cast<size_t>(split.size);
        double factor = scale[c] / std::sqrt(s.variance[c] + epsilon);
        int64_t at = static_cast<int64_t>(plane) * split.inner;
        for (int64_t i = at; i < at + split.inner; ++i) {
          double value = static_cast<double>(x[i]);
          data_of<T>(out)[i] = static_cast<T>((value - s.mean[c]) * factor + bias[c]);
        }
      }
    });
    return {};
  }));
  if (!training) return {};
  double momentum = call.node().attr_float("momentum", 0.9);
  TN_CHECK(write_running(call, 1, momentum, s.mean));
  return write_running(call, 2, momentum, s.variance);
}

// y = x*factor + shift per channel, of the statistics given or, in training, of the batch's own.
Result<std::vector<Value>> batch_norm_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < b.ranked(x, "BatchNormalization").rank(); ++i)
    if (i != 1) axes.push_back(static_cast<int64_t>(i));
  auto wide = [&](Value v) { return b.cast(b.op("Unsqueeze", {v, b.ints(axes)}), x.dtype()); };
  auto mean_of = [&](Value v, int64_t keep) {
    return b.op("ReduceMean", {v, b.ints(axes)}, {{"keepdims", keep}});
  };
  double momentum = node.attr_float("momentum", 0.9);
  bool training = node.attr_int("training_mode") != 0;
  std::vector<Value> out(node.n_outputs());
  Value centred, variance;
  if (training) {
    centred = b.sub(x, mean_of(x, 1));
    variance = mean_of(b.mul(centred, centred), 0);
    Value now[] = {mean_of(x, 0), variance};
    for (size_t i = 1; i < out.size(); ++i) {  // runs of the statistics
      Value before = node.input(i + 2);
      auto part = [&](Value v, double share) {
        return b.mul(b.cast(v, before.dtype()), b.number(share, before.dtype()));
      };
      out[i] = b.add(part(before, momentum), part(now[i - 1], 1 - momentum));
    }
  } else {
    if (out.size() > 1) return unsupported("BatchNormalization: outputs 1 and 2 are for training");
    centred = b.sub(x, wide(node.input(3)));
    variance = node.input(4);
  }
  Value root =
      b.op("Sqrt", {b.add(variance, b.number(node.attr_float("epsilon", 1e-5), variance.dtype()))});
  Value factor = b.div(b.cast(node.input(1), root.dtype()), root);
  out[0] = b.add(b.mul(centred, wide(factor)), wide(node.input(2)));
  TN_CHECK(b.status());
  return out;
}

Result<Node> batch_norm_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(2, 4);
  TN_TRY(x, random.input(TN_F32, dims));
  std::vector<Value> inputs{x};
  for (int i = 0; i < 3; ++i) {
    TN_TRY(value, random.input(TN_F32, {dims[1]}));
    inputs.push_back(value);
  }
  std::vector<float> variance;
  for (int64_t i = 0; i < dims[1]; ++i)
    variance.push_back(0.25f * static_cast<float>(random.integer(1, 8)));
  TN_TRY(v, edit.constant<float>(TN_F32, {dims[1]}, variance));
  inputs.push_back(v);
  if (random.coin()) return edit.add({.type = "BatchNormalization", .inputs = inputs});
  return edit.add({.type = "BatchNormalization",
                   .inputs = inputs,
                   .attrs = {{"training_mode", 1}, {"epsilon", 0.1}},
                   .n_outputs = 3});
}

// The statistics that inference is given, as an affine map of x: y = (x - mean)*factor + bias.
void given_vjp(Gradients& g, const std::vector<int64_t>& axes) {
  Value x = g.in(0), dy = g.cotangent();
  auto wide = [&](Value v) { return g.cast(g.op("Unsqueeze", {v, g.ints(axes)}), x.dtype()); };
  auto total = [&](Value v, uint64_t i) {
    g.set(i, g.cast(g.sum(v, axes, false), g.in(i).dtype()));
  };
  Value scale = g.in(1), variance = g.in(4);
  Value root = g.op(
      "Sqrt", {g.add(variance, g.number(g.of().attr_float("epsilon", 1e-5), variance.dtype()))});
  Value normal = g.div(g.sub(x, wide(g.in(3))), wide(root));
  Value dx = g.mul(dy, wide(g.div(g.cast(scale, root.dtype()), root)));
  if (g.wanted(0)) g.set(0, dx);
  if (g.wanted(1)) total(g.mul(dy, normal), 1);
  if (g.wanted(2)) total(dy, 2);
  if (g.wanted(3)) total(g.neg(dx), 3);
  if (!g.wanted(4)) return;
  Value half = g.number(-0.5, x.dtype());
  total(g.div(g.mul(g.mul(dx, normal), half), wide(root)), 4);
}

// What the running statistics pass back: each is before*momentum + now*(1 - momentum).
Value running_vjp(Gradients& g, const std::vector<int64_t>& axes, Value dx) {
  Value x = g.in(0);
  double momentum = g.of().attr_float("momentum", 0.9);
  auto mean = [&](Value v) { return g.op("ReduceMean", {v, g.ints(axes)}); };
  for (uint64_t i = 1; i < g.of().n_outputs(); ++i) {
    Value after = g.cotangent(i);
    if (!after) continue;
    if (g.wanted(i + 2)) g.set(i + 2, g.mul(after, g.number(momentum, after.dtype())));
    if (!g.wanted(0)) continue;
    Type type = g.fixed(x, "BatchNormalization");
    double count = 1;
    for (int64_t axis : axes)
      count *= static_cast<double>(type.is_static() ? type.dims[static_cast<size_t>(axis)] : 1);
    Value share = g.mul(g.cast(g.op("Unsqueeze", {after, g.ints(axes)}), x.dtype()),
                        g.number((1 - momentum) * static_cast<double>(i) / count, x.dtype()));
    if (i == 2) share = g.mul(g.sub(x, mean(x)), share);  // d variance = 2*(x - mean)/count
    dx = dx ? g.add(dx, share) : g.expand_like(share, x);
  }
  return dx;
}

Status batch_norm_vjp(Gradients& g) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < g.ranked(g.in(0), "BatchNormalization").rank(); ++i)
    if (i != 1) axes.push_back(static_cast<int64_t>(i));
  if (g.of().attr_int("training_mode") == 0) {
    if (g.cotangent()) given_vjp(g, axes);
    return {};
  }
  Value dx;
  if (g.cotangent() && (g.wanted(0) || g.wanted(1) || g.wanted(2))) {
    Node made = g.node({.type = "BatchNormGrad",
                        .inputs = {g.cotangent(), g.in(0), g.in(1)},
                        .attrs = {{"epsilon", g.of().attr_float("epsilon", 1e-5)}},
                        .n_outputs = 3,
                        .domain = "tenon"});
    if (!made) return {};
    dx = made.output(0);
    if (g.wanted(1)) g.set(1, made.output(1));
    if (g.wanted(2)) g.set(2, made.output(2));
  }
  dx = running_vjp(g, axes, dx);
  if (g.wanted(0) && dx) g.set(0, dx);
  return {};
}

// Statistics of a batch are of all examples together: only inference treats them alone.
Status batch_norm_batch(Batching& b) {
  if (b.of().attr_int("training_mode") != 0)
    return invalid(
        "training_mode: its statistics mix the examples of a batch; under vmap use inference, "
        "GroupNormalization or LayerNormalization");
  return unsupported("by axes");
}

constexpr tn_op kBatchNorm = op_row(
    {.type = "BatchNormalization",
     .since = 15,
     .axes = "n c s.., c, c, c, c -> n c s.., c?, c?",
     .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-5},
                       {"name": "momentum", "type": "float", "default": 0.9},
                       {"name": "training_mode", "type": "int", "default": 0}])",
     .quant = "requant",
     .shape = shape<batch_norm_shape,
                    "x: T[n c s..], scale: U[c], bias: U[c], mean: V[c], variance: V[c] "
                    "; T = float, U = float, V = float">,
     .decompose = decompose<batch_norm_decompose>,
     .cost = cost<[](Node node) { return OpCost{2 * output_elements(node), node_bytes(node)}; }>,
     .ref = ref<batch_norm_ref>,
     .sample = sample<batch_norm_sample>,
     .vjp = vjp<batch_norm_vjp>,
     .vjp_inputs = 1 | 2 | 8 | 16,
     .vjp_outputs = 0,
     .batch = batch<batch_norm_batch>,
     .cast = "O2=fp32 own=1,2,3,4"});

}  // namespace

TENON_OPS(batch_norm, &kBatchNorm)

}  // namespace tenon::ops

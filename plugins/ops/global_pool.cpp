// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one number per channel.
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "roots.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status global_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  if (x.rank() < 2) return invalid(cat("x: expected rank from 2, got ", x.rank()));
  Dims out = dims_of(x);
  std::fill(out.begin() + 2, out.end(), Dim(1));
  return set_output(edit, node, 0, x.dtype, out);
}

// reduce(first, count) -> double, over each channel's elements.
template <class Reduce>
Status global_ref(const Call& call, const Reduce& reduce) {
  std::vector<int64_t> shape(call.shape(0).begin(), call.shape(0).end());
  if (shape.size() < 2) return invalid(cat("x: expected rank from 2, got ", shape.size()));
  int64_t planes = shape[0] * shape[1];
  int64_t size = element_count(std::span<const int64_t>(shape).subspan(2));
  std::fill(shape.begin() + 2, shape.end(), 1);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    parallel_for(call.ctx(), static_cast<uint64_t>(planes), 16, [&](uint64_t lo, uint64_t hi) {
      for (auto i = static_cast<int64_t>(lo); i < static_cast<int64_t>(hi); ++i)
        data_of<T>(out)[i] = static_cast<T>(reduce(call.data<T>(0) + i * size, size));
    });
    return {};
  });
}

Status average_ref(const Call& call) {
  return global_ref(call, [](const auto* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += static_cast<double>(x[i]);
    return sum / static_cast<double>(n);
  });
}

Status max_ref(const Call& call) {
  return global_ref(call, [](const auto* x, int64_t n) {
    double most = -HUGE_VAL;
    for (int64_t i = 0; i < n; ++i) {
      auto value = static_cast<double>(x[i]);
      if (value > most || std::isnan(value)) most = value;
    }
    return most;
  });
}

Status lp_ref(const Call& call) {
  auto power = static_cast<double>(call.node().attr_int("p", 2));
  return global_ref(call, [power](const auto* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += std::pow(std::fabs(static_cast<double>(x[i])), power);
    return std::pow(sum, 1 / power);
  });
}

Result<Node> global_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  TN_TRY(in, random.input(TN_F32, random.shape(3, 5)));
  return edit.add({.type = type, .inputs = {in}});
}
Result<Node> average_sample(EditView edit, uint64_t seed) {
  return global_sample(edit, seed, "GlobalAveragePool");
}
Result<Node> max_sample(EditView edit, uint64_t seed) {
  return global_sample(edit, seed, "GlobalMaxPool");
}
Result<Node> lp_sample(EditView edit, uint64_t seed) {
  return global_sample(edit, seed, "GlobalLpPool");
}

Result<std::vector<Value>> global_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  std::vector<int64_t> space;
  for (size_t i = 2; i < b.ranked(x, node.type()).rank(); ++i)
    space.push_back(static_cast<int64_t>(i));
  auto reduce = [&](std::string_view type, Value of) {
    return b.op(type, {of, b.ints(space)}, {{"noop_with_empty_axes", 1}});
  };
  Value y;
  if (node.is("GlobalLpPool")) {
    auto p = static_cast<double>(node.attr_int("p", 2));
    Value powers = b.op("Pow", {b.op("Abs", {x}), b.number(p, x.dtype())});
    y = root(b, reduce("ReduceSum", powers), p);
  } else {
    y = reduce(node.is("GlobalMaxPool") ? "ReduceMax" : "ReduceMean", x);
  }
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

OpCost global_cost(Node node) {
  Type x = node.input(0).type();
  return {x.is_static() ? static_cast<double>(x.elements()) : 0, node_bytes(node)};
}

constexpr tn_op kAverage = op_row({.type = "GlobalAveragePool",
                                   .since = 22,
                                   .axes = "n c s~.. -> n c s'..",
                                   .quant = "requant",
                                   .shape = shape<global_shape, "x: float[n c s..]">,
                                   .decompose = decompose<global_decompose>,
                                   .cost = cost<global_cost>,
                                   .ref = ref<average_ref>,
                                   .sample = sample<average_sample>});
constexpr tn_op kMax = op_row({.type = "GlobalMaxPool",
                               .since = 22,
                               .axes = "n c s~.. -> n c s'..",
                               .quant = "same_scale",
                               .shape = shape<global_shape, "x: float[n c s..]">,
                               .decompose = decompose<global_decompose>,
                               .cost = cost<global_cost>,
                               .ref = ref<max_ref>,
                               .sample = sample<max_sample>});
constexpr tn_op kLp = op_row({.type = "GlobalLpPool",
                              .since = 22,
                              .axes = "n c s~.. -> n c s'..",
                              .attributes = R"([{"name": "p", "type": "int", "default": 2}])",
                              .shape = shape<global_shape, "x: float[n c s..]">,
                              .decompose = decompose<global_decompose>,
                              .cost = cost<global_cost>,
                              .ref = ref<lp_ref>,
                              .sample = sample<lp_sample>});

}  // namespace

TENON_OPS(global_pool, &kAverage, &kMax, &kLp)

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and Hardmax along one axis.
#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status softmax_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (x.ranked) {
    TN_TRY(axis, axis_in(node.attr_int("axis", -1), x.rank()));
    (void)axis;
  }
  return set_output(edit, node, 0, x);
}

// Turns one line, in double, into its result. Subtracting the maximum keeps exp() in range.
using Line = void (*)(std::vector<double>& line);

double highest(const std::vector<double>& line) {
  return *std::max_element(line.begin(), line.end());
}
double sum_of_exp(const std::vector<double>& line, double shift) {
  double sum = 0;
  for (double value : line)
    sum += std::exp(value - shift);
  return sum;
}
void softmax_line(std::vector<double>& line) {
  double shift = highest(line), sum = sum_of_exp(line, shift);
  for (double& value : line)
    value = std::exp(value - shift) / sum;
}
void log_softmax_line(std::vector<double>& line) {
  double shift = highest(line), offset = shift + std::log(sum_of_exp(line, shift));
  for (double& value : line)
    value -= offset;
}
void hardmax_line(std::vector<double>& line) {
  auto most = std::ranges::find_if(line, [](double value) { return std::isnan(value); });
  if (most == line.end()) most = std::ranges::max_element(line);
  const auto at = most - line.begin();
  std::fill(line.begin(), line.end(), 0.0);
  line[static_cast<size_t>(at)] = 1;
}

template <Line kLine>
Status line_ref(const Call& call) {
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -1), call.shape(0).size()));
  AxisSplit split(call.shape(0), axis);
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  if (split.size == 0) return {};
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    auto lines = static_cast<uint64_t>(split.outer * split.inner);
    parallel_for(call.ctx(), lines, 16, [&](uint64_t begin, uint64_t end) {
      std::vector<double> line(static_cast<size_t>(split.size));
      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
        int64_t at = i / split.inner * split.size * split.inner + i % split.inner;
        for (size_t k = 0; k < line.size(); ++k)
          line[k] = static_cast<double>(call.data<T>(0)[at + int64_t(k) * split.inner]);
        kLine(line);
        for (size_t k = 0; k < line.size(); ++k)
          data_of<T>(out)[at + int64_t(k) * split.inner] = static_cast<T>(line[k]);
      }
    });
    return {};
  });
}

Result<Node> line_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  auto rank = static_cast<int64_t>(dims.size());
  TN_TRY(x, random.input(TN_F32, dims));
  return edit.add(
      {.type = type, .inputs = {x}, .attrs = {{"axis", random.integer(-rank, rank - 1)}}});
}
Result<Node> softmax_sample(EditView edit, uint64_t seed) {
  return line_sample(edit, seed, "Softmax");
}
Result<Node> log_softmax_sample(EditView edit, uint64_t seed) {
  return line_sample(edit, seed, "LogSoftmax");
}
Result<Node> hardmax_sample(EditView edit, uint64_t seed) {
  return line_sample(edit, seed, "Hardmax");
}

Result<std::vector<Value>> softmax_decompose(EditView edit, Node node) {
  TN_TRY(axes, edit.ints({node.attr_int("axis", -1)}));
  TN_TRY(most, edit.op("ReduceMax", {node.input(0), axes}));
  TN_TRY(shifted, edit.op("Sub", {node.input(0), most}));
  TN_TRY(raised, edit.op("Exp", {shifted}));
  TN_TRY(sum, edit.op("ReduceSum", {raised, axes}));
  if (node.is("Softmax")) {
    TN_TRY(y, edit.op("Div", {raised, sum}));
    return std::vector<Value>{y};
  }
  TN_TRY(log_sum, edit.op("Log", {sum}));
  TN_TRY(y, edit.op("Sub", {shifted, log_sum}));
  return std::vector<Value>{y};
}

Status softmax_vjp(Gradients& g) {
  Value y = g.out(), dy = g.cotangent();
  int64_t axis = g.of().attr_int("axis", -1);
  if (g.of().is("LogSoftmax")) {
    g.set(0, g.sub(dy, g.mul(g.op("Exp", {y}), g.sum(dy, {axis}))));
    return {};
  }
  Value inner = g.sum(g.mul(dy, y), {axis});
  g.set(0, g.mul(y, g.sub(dy, inner)));
  return {};
}

OpCost softmax_cost(Node node) {
  return {5 * output_elements(node), node_bytes(node)};
}

constexpr tn_op softmax_row(const char* type,
                            decltype(tn_op::decompose) decompose_column,
                            decltype(tn_op::ref) ref_column,
                            decltype(tn_op::sample) sample_column,
                            decltype(tn_op::vjp) vjp_column = nullptr) {
  return op_row({.type = type,
                 .since = 13,
                 .axes = "p.. d~ r.. -> p.. d r.. ; p = axis",
                 .attributes = R"([{"name": "axis", "type": "int", "default": -1}])",
                 .shape = shape<softmax_shape, "x: float">,
                 .decompose = decompose_column,
                 .cost = cost<softmax_cost>,
                 .ref = ref_column,
                 .sample = sample_column,
                 .vjp = vjp_column,
                 .vjp_inputs = 0,
                 .vjp_outputs = 1,
                 .cast = "cuda=fp32"});
}
constexpr tn_op kSoftmax = softmax_row("Softmax",
                                       decompose<softmax_decompose>,
                                       ref<line_ref<softmax_line>>,
                                       sample<softmax_sample>,
                                       vjp<softmax_vjp>);
constexpr tn_op kLogSoftmax = softmax_row("LogSoftmax",
                                          decompose<softmax_decompose>,
                                          ref<line_ref<log_softmax_line>>,
                                          sample<log_softmax_sample>,
                                          vjp<softmax_vjp>);
constexpr tn_op kHardmax =
    softmax_row("Hardmax", nullptr, ref<line_ref<hardmax_line>>, sample<hardmax_sample>);

}  // namespace

TENON_OPS(softmax, &kSoftmax, &kLogSoftmax, &kHardmax)

}  // namespace tenon::ops

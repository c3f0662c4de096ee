// SPDX-License-Identifier: Apache-2.0
// Of ONNX's ai.onnx.ml: Binarizer and ArrayFeatureExtractor.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

Status binarizer_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}
Status binarizer_ref(const Call& call) {
  double threshold = call.node().attr_float("threshold");
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  for (int64_t i = 0; i < element_count(out); ++i) {
    double value = load_number(call.data<char>(0), call.dtype(0), i);
    store_number(data_of<char>(out), call.dtype(0), i, value > threshold ? 1 : 0);
  }
  return {};
}
// Steps.
Status no_gradient(Gradients&) {
  return {};
}
Result<Node> binarizer_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 3)));
  return edit.add(
      {.type = "Binarizer", .inputs = {x}, .attrs = {{"threshold", 0.5}}, .domain = kDomain});
}

// The columns y of the last axis.
Status extractor_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), y = node.input(1).type();
  if (!x.ranked || x.rank() < 1) return set_output(edit, node, 0, unranked(x.dtype));
  Dims out = dims_of(x);
  out.back() = y.is_static() ? Dim(y.elements()) : Dim();
  if (out.size() == 1) out.insert(out.begin(), 1);
  return set_output(edit, node, 0, x.dtype, out);
}
Status extractor_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0)), at = read_ints(call.in(1));
  if (shape.empty()) return invalid("x: expected rank from 1, got 0");
  int64_t columns = shape.back(), rows = element_count(std::span(shape).first(shape.size() - 1));
  for (int64_t column : at)
    if (column < 0 || column >= columns)
      return {TN_OUT_OF_RANGE, cat("y: expected 0..", columns - 1, ", got ", column)};
  auto n = static_cast<int64_t>(at.size());
  shape.back() = n;
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  Cells from(call.in(0)), to(out);
  for (int64_t i = 0; i < rows * n; ++i)
    to.copy(i, from, i / n * columns + at[static_cast<size_t>(i % n)]);
  to.flush();
  return {};
}
Result<std::vector<Value>> extractor_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value columns = b.reshape(node.input(1), {-1});
  Value y = b.op("Gather", {node.input(0), columns}, {{"axis", -1}});
  if (b.ranked(node.input(0), "ArrayFeatureExtractor").rank() == 1)
    y = b.op("Unsqueeze", {y, b.ints({0})});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> extractor_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 4}));
  TN_TRY(at, edit.ints({random.integer(0, 3), random.integer(0, 3)}));
  return edit.add({.type = "ArrayFeatureExtractor", .inputs = {x, at}, .domain = kDomain});
}

constexpr tn_op kBinarizer =
    op_row({.type = "Binarizer",
            .since = 1,
            .domain = kDomain,
            .axes = "s.. -> s..",
            .attributes = R"([{"name": "threshold", "type": "float", "default": 0.0}])",
            .shape = shape<binarizer_shape>,
            .cost = cost<move_cost>,
            .ref = ref<binarizer_ref>,
            .sample = sample<binarizer_sample>,
            .vjp = vjp<no_gradient>,
            .vjp_inputs = 0,
            .vjp_outputs = 0});
constexpr tn_op kExtractor = op_row({.type = "ArrayFeatureExtractor",
                                     .since = 1,
                                     .domain = kDomain,
                                     .shape = shape<extractor_shape>,
                                     .decompose = decompose<extractor_decompose>,
                                     .cost = cost<move_cost>,
                                     .ref = ref<extractor_ref>,
                                     .sample = sample<extractor_sample>});

}  // namespace

TENON_OPS(features, &kBinarizer, &kExtractor)

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
// Of ONNX's ai.onnx.ml: Binarizer, Scaler and ArrayFeatureExtractor.
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
Result<std::vector<Value>> binarizer_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  Value limit = b.number(node.attr_float("threshold"), is_float(x.dtype()) ? x.dtype() : TN_F64);
  Value y = b.cast(b.op("Greater", {b.cast(x, limit.dtype()), limit}), x.dtype());
  TN_CHECK(b.status());
  return std::vector<Value>{y};
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

// (x - offset) * scale in float32, each one number or one for each feature.
Status scaler_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(TN_F32));
  return set_output(edit, node, 0, TN_F32, dims_of(x));
}
Result<std::vector<float>> scaler_numbers(Node node, const char* name, size_t features) {
  std::vector<double> stated = floats_of(node.attr(name));
  if (stated.size() != 1 && stated.size() != features)
    return invalid(cat(name, ": expected 1 or ", features, " numbers, got ", stated.size()));
  return std::vector<float>(stated.begin(), stated.end());
}
Status scaler_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  size_t features = shape.empty() ? 1 : static_cast<size_t>(shape.back());
  TN_TRY(offset, scaler_numbers(call.node(), "offset", features));
  TN_TRY(scale, scaler_numbers(call.node(), "scale", features));
  TN_TRY(out, call.out(0, TN_F32, shape));
  for (int64_t i = 0; i < element_count(out); ++i) {
    size_t feature = static_cast<size_t>(i) % features;
    auto x = static_cast<float>(load_number(call.data<char>(0), call.dtype(0), i));
    data_of<float>(out)[i] =
        (x - offset[offset.size() > 1 ? feature : 0]) * scale[scale.size() > 1 ? feature : 0];
  }
  return {};
}
Result<std::vector<Value>> scaler_decompose(EditView edit, Node node) {
  Value x = node.input(0);
  Type type = x.type();
  if (!type.ranked || type.rank() == 0) return unsupported("decomposed only with a known rank");
  Value made[2];
  const char* names[] = {"offset", "scale"};
  for (size_t i = 0; i < 2; ++i) {
    int64_t stated = static_cast<int64_t>(floats_of(node.attr(names[i])).size());
    int64_t last = type.dims.back();
    TN_TRY(numbers, scaler_numbers(node, names[i], static_cast<size_t>(last < 0 ? stated : last)));
    std::vector<int64_t> dims{static_cast<int64_t>(numbers.size())};
    TN_TRY(constant, edit.constant<float>(TN_F32, dims, numbers));
    made[i] = constant;
  }
  TN_TRY(real, edit.op("Cast", {x}, {{"to", any_dtype(TN_F32)}}));
  TN_TRY(away, edit.op("Sub", {real, made[0]}));
  TN_TRY(y, edit.op("Mul", {away, made[1]}));
  return std::vector<Value>{y};
}
Result<Node> scaler_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 3), 3}));
  std::vector<double> offset{0.5, -1, 2}, scale{2};
  if (random.coin()) std::swap(offset, scale);
  return edit.add({.type = "Scaler",
                   .inputs = {x},
                   .attrs = {{"offset", any_floats(offset)}, {"scale", any_floats(scale)}},
                   .domain = kDomain});
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
            .shape = shape<binarizer_shape, "x: number">,
            .decompose = decompose<binarizer_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<binarizer_ref>,
            .sample = sample<binarizer_sample>,
            .vjp = vjp<no_gradient>,
            .vjp_inputs = 0,
            .vjp_outputs = 0});
constexpr tn_op kScaler = op_row({.type = "Scaler",
                                  .since = 1,
                                  .domain = kDomain,
                                  .attributes = R"([{"name": "offset", "type": "floats"},
                                                    {"name": "scale", "type": "floats"}])",
                                  .shape = shape<scaler_shape, "x: number">,
                                  .decompose = decompose<scaler_decompose>,
                                  .cost = cost<move_cost>,
                                  .ref = ref<scaler_ref>,
                                  .sample = sample<scaler_sample>});
constexpr tn_op kExtractor = op_row({.type = "ArrayFeatureExtractor",
                                     .since = 1,
                                     .domain = kDomain,
                                     .shape = shape<extractor_shape, "x: any, at: int">,
                                     .decompose = decompose<extractor_decompose>,
                                     .cost = cost<move_cost>,
                                     .ref = ref<extractor_ref>,
                                     .sample = sample<extractor_sample>});

}  // namespace

TENON_OPS(features, &kBinarizer, &kScaler, &kExtractor)

}  // namespace tenon::ops

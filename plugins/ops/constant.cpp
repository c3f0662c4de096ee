// SPDX-License-Identifier: Apache-2.0
// Constant and ConstantOfShape.
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// The tensor that a Constant node states in one of its attributes.
Result<Tensor> stated_tensor(tn_ctx* ctx, Node node) {
  if (tn_any value = node.attr("value"); value.tag == TN_ANY_TENSOR)
    return Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(value.v.p)));
  for (bool list : {false, true}) {
    if (tn_any ints = node.attr(list ? "value_ints" : "value_int"); ints.tag != TN_ANY_NONE) {
      std::vector<int64_t> values = ints_of(ints), dims;
      if (list) dims.push_back(static_cast<int64_t>(values.size()));
      return Tensor::of<int64_t>(ctx, TN_I64, dims, values);
    }
    tn_any floats = node.attr(list ? "value_floats" : "value_float");
    if (floats.tag == TN_ANY_NONE) continue;
    std::vector<float> values;
    std::vector<int64_t> dims;
    for (double number : floats_of(floats))
      values.push_back(static_cast<float>(number));
    if (list) dims.push_back(static_cast<int64_t>(values.size()));
    return Tensor::of<float>(ctx, TN_F32, dims, values);
  }
  return invalid("expected value, value_float, value_floats, value_int or value_ints, got none");
}

Status constant_shape(EditView edit, Node node) {
  TN_TRY(tensor, stated_tensor(edit.ctx(), node));
  DLTensor raw = tensor.dl();
  TN_CHECK(set_output(edit, node, 0, Type(dtype_of(raw), to_vector(shape_of(raw)))));
  bool shape_like = dtype_of(raw) == TN_I64 && raw.ndim <= 1 && element_count(raw) <= 64;
  if (!shape_like) return {};
  std::vector<int64_t> values = read_ints(raw);
  return set_contents(edit, node.output(), Dims(values.begin(), values.end()));
}

Status constant_ref(const Call& call) {
  TN_TRY(tensor, stated_tensor(call.ctx(), call.node()));
  DLTensor raw = tensor.dl();
  TN_TRY(out, call.out(0, dtype_of(raw), shape_of(raw)));
  uint64_t bytes = bytes_of(dtype_of(raw), element_count(raw));
  if (bytes > 0) std::memcpy(data_of<char>(out), data_of<char>(raw), bytes);
  return {};
}

Result<Node> constant_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  if (random.coin())
    return edit.add({.type = "Constant", .attrs = {{"value_int", random.integer(-9, 9)}}});
  std::vector<double> numbers{0.5, -1.5, static_cast<double>(random.integer(0, 9))};
  return edit.add({.type = "Constant", .attrs = {{"value_floats", any_floats(numbers)}}});
}

// One element; float 0 unless stated.
Tensor fill_of(Node node) {
  tn_any value = node.attr("value");
  if (value.tag != TN_ANY_TENSOR) return {};
  return Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(value.v.p)));
}

Status fill_shape(EditView edit, Node node) {
  Tensor fill = fill_of(node);
  uint32_t dtype = fill ? dtype_of(fill.dl()) : TN_F32;
  std::optional<Dims> dims = contents(node.input(0));
  if (!dims) return set_output(edit, node, 0, unranked(dtype));
  TN_CHECK(set_output(edit, node, 0, dtype, *dims));
  bool shape_like = dtype == TN_I64 && dims->size() == 1 && (*dims)[0].known() &&
                    *(*dims)[0].value <= 64 && *(*dims)[0].value >= 0;
  if (!shape_like) return {};
  int64_t value = *data_of<int64_t>(fill.dl());
  return set_contents(edit, node.output(), Dims(static_cast<size_t>(*(*dims)[0].value), value));
}

Status fill_ref(const Call& call) {
  Tensor fill = fill_of(call.node());
  TN_TRY(shape, read_shape(call.in(0), "shape"));
  if (!fill) {
    TN_TRY(zero, Tensor::zeros(call.ctx(), TN_F32, std::span<const int64_t>{}));
    fill = zero;
  }
  DLTensor one = fill.dl();
  if (element_count(one) != 1)
    return invalid(cat("value: expected one element, got ", element_count(one)));
  TN_TRY(out, call.out(0, dtype_of(one), shape));
  Cells from(one), to(out);
  to.fill(from, 0, element_count(out));
  to.flush();
  return {};
}

Result<Node> fill_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(shape, edit.ints(random.shape(0, 3)));
  TN_TRY(value, Tensor::of<float>(edit.ctx(), TN_F32, std::vector<int64_t>{1},
                                  std::vector<float>{float(random.integer(-4, 4))}));
  return edit.add(
      {.type = "ConstantOfShape", .inputs = {shape}, .attrs = {{"value", any_tensor(value)}}});
}

constexpr tn_op kConstant = op_row({.type = "Constant",
                                    .since = 25,
                                    .attributes = R"([{"name": "value", "type": "tensor"},
                              {"name": "value_float", "type": "float"},
                              {"name": "value_floats", "type": "floats"},
                              {"name": "value_int", "type": "int"},
                              {"name": "value_ints", "type": "ints"}])",
                                    .shape = shape<constant_shape>,
                                    .cost = cost<move_cost>,
                                    .ref = ref<constant_ref>,
                                    .sample = sample<constant_sample>});
constexpr tn_op kFill = op_row({.type = "ConstantOfShape",
                                .since = 25,
                                .traits = TN_OP_DATA_SHAPE,
                                .attributes = R"([{"name": "value", "type": "tensor"}])",
                                .shape = shape<fill_shape, "shape: int[n]">,
                                .cost = cost<move_cost>,
                                .ref = ref<fill_ref>,
                                .sample = sample<fill_sample>,
                                .coupling = "same sizes=0 value=value"});

}  // namespace

TENON_OPS(constant, &kConstant, &kFill)

}  // namespace tenon::ops

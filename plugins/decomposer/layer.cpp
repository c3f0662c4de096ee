// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/role/op.h"

#include "tenon/sdk/number.hpp"

namespace tenon::decomposer {
namespace {

// MatMul and Gemm with transB 0 have [n_in, n_out].
bool is_turned(const Layer& layer) {
  if (layer.form == Form::kConv) return false;
  return layer.form == Form::kMatMul || layer.node.attr_int("transB") == 0;
}

int64_t known(int64_t dim, int64_t otherwise) {
  return dim > 0 ? dim : otherwise;
}

Status read_weight(Layer* layer) {
  Value value = layer->node.input(1);
  if (value.consumer_count() != 1)
    return unsupported(cat("its weight is shared by ", value.consumer_count(), " nodes"));
  Tensor held = value.constant();
  DLTensor tensor = held.dl();
  layer->dtype = dtype_of(tensor);
  if (layer->dtype != TN_F32 && layer->dtype != TN_F64)
    return unsupported(
        cat("its weight is ", dtype_name(layer->dtype), ": expected float32 or float64"));
  auto dims = shape_of(tensor);
  size_t rank = dims.size();
  if (layer->form == Form::kConv ? rank < 3 : rank != 2)
    return unsupported(cat("its weight has ", rank, " dimensions"));
  if (element_count(tensor) == 0) return unsupported("its weight is empty");
  Kernel& kernel = layer->weight;
  kernel = {dims[0], dims[1], 1, {}};
  for (size_t i = 2; i < rank; ++i) {
    layer->window.push_back(dims[i]);
    kernel.window *= dims[i];
  }
  TN_TRY(numbers, numbers_as<double>(tensor));
  if (is_turned(*layer)) {
    std::swap(kernel.n_out, kernel.n_in);
    kernel.numbers.resize(numbers.size());
    Eigen::Map<Matrix> to(kernel.numbers.data(), kernel.n_out, kernel.n_in);
    to = MatrixView(numbers.data(), kernel.n_in, kernel.n_out).transpose();
  } else {
    kernel.numbers = std::move(numbers);
  }
  double norm = kernel.squared_norm();
  if (!std::isfinite(norm)) return unsupported("its weight has NaN or infinity");
  if (norm == 0) return unsupported("its weight is all zeros");
  return {};
}

void read_extents(Layer* layer) {
  Type in = layer->node.input(0).type(), out = layer->node.output().type();
  if (layer->form != Form::kConv) {  // rows of the left matrix, whatever their shape
    for (size_t i = 0; in.ranked && i + 1 < in.dims.size(); ++i) {
      layer->is_open |= i > 0 && in.dims[i] <= 0;
      layer->batch *= known(in.dims[i], 1);
    }
    layer->is_open |= !in.ranked;
    return;
  }
  size_t n_axes = layer->window.size();
  std::vector<int64_t> strides = layer->node.attr_ints("strides");
  bool ranked = in.ranked && out.ranked;
  if (in.ranked) layer->batch = known(in.dims[0], 1);
  for (size_t i = 0; i < n_axes; ++i) {
    bool is_known = ranked && in.dims[i + 2] > 0 && out.dims[i + 2] > 0;
    layer->is_open |= !is_known;
    layer->extents_in.push_back(is_known ? in.dims[i + 2] : i < strides.size() ? strides[i] : 1);
    layer->extents_out.push_back(is_known ? out.dims[i + 2] : 1);
  }
}

}  // namespace

bool has_weight(Node node) {
  const tn_op* row = node.row();
  if (!row || !view(row->quant).starts_with("compute")) return false;
  Value weight = node.input(1);
  return weight && (weight.is_constant() || weight.producer().is("DequantizeLinear"));
}

Result<Layer> read_layer(Node node) {
  Layer layer;
  layer.node = node;
  if (node.is("Conv")) {
    layer.form = Form::kConv;
    layer.group = std::max<int64_t>(node.attr_int("group", 1), 1);
  } else if (node.is("MatMul")) {
    layer.form = Form::kMatMul;
  } else if (node.is("Gemm")) {
    layer.form = Form::kGemm;
  } else {
    return unsupported(cat("operator ", node.type(), ": expected Conv, MatMul or Gemm"));
  }
  if (!node.input(1).is_constant())
    return unsupported("its weight is quantized: decompose the float model first");
  TN_CHECK(read_weight(&layer));
  read_extents(&layer);
  return layer;
}

}  // namespace tenon::decomposer

// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/sdk/multiplied.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::decomposer {
namespace {

int64_t known(int64_t dim, int64_t otherwise) {
  return dim > 0 ? dim : otherwise;
}

const tn_quant_product* product_of(Node node) {
  const tn_op_columns* columns = node.columns();
  return columns && columns->n_products > 0 ? columns->products : nullptr;
}

// A layer of several products has no smaller form; nor has a convolution that does more with its
// sums than add a bias, for the last of the small ones makes them.
Status read_form(Layer* layer) {
  const tn_op_columns& columns = *layer->node.columns();
  if (columns.n_products > 1)
    return unsupported(cat("it has ", columns.n_products, " products: expected 1"));
  const tn_quant_product& product = columns.products[0];
  layer->act = static_cast<uint64_t>(product.act);
  layer->weight_input = static_cast<uint64_t>(product.weight);
  layer->bias = product.bias;
  std::optional<LayerForm> form = layer_form(layer->node, layer->act, layer->weight_input);
  if (!form) return unsupported("its row does not say that it is a product or a convolution");
  if (form->is_stack) return unsupported("its weight is a stack of matrices: expected one matrix");
  layer->form = *form;
  layer->group = std::max<int64_t>(form->groups, 1);
  layer->is_conv = form->slides || !form->window.empty();
  if (!layer->node.input(layer->act).type().ranked)
    return unsupported("the rank of its input is not known");
  if (!layer->is_conv) return {};
  if (columns.quant_flags & TN_QUANT_FUSED)
    return unsupported("it does more with its sums than add a bias");
  if (form->act_in != 1) return unsupported("expected a convolution with its channels on axis 1");
  for (uint64_t i = 0; i < layer->node.n_inputs(); ++i)
    if (layer->node.input(i) && i != layer->act && i != layer->weight_input &&
        static_cast<int64_t>(i) != layer->bias)
      return unsupported(cat("it reads input ", i, ", which is neither its weight nor its bias"));
  return {};
}

Status read_weight(Layer* layer) {
  Value value = layer->node.input(layer->weight_input);
  if (value.consumer_count() != 1)
    return unsupported(cat("its weight is shared by ", value.consumer_count(), " nodes"));
  Tensor held = value.constant();
  DLTensor tensor = held.dl();
  layer->dtype = dtype_of(tensor);
  if (layer->dtype != TN_F32 && layer->dtype != TN_F64)
    return unsupported(
        cat("its weight is ", dtype_name(layer->dtype), ": expected float32 or float64"));
  std::vector<int64_t> dims(shape_of(tensor).begin(), shape_of(tensor).end());
  std::vector<int64_t> axes = layer->weight_axes();
  if (dims.size() != axes.size())
    return unsupported(cat("its weight has ", dims.size(), " dimensions"));
  if (element_count(tensor) == 0) return unsupported("its weight is empty");
  auto extent = [&](int64_t axis) { return dims[static_cast<size_t>(axis)]; };
  Kernel& kernel = layer->weight;
  kernel = {extent(axes[0]), extent(axes[1]), 1, {}};
  for (int64_t axis : layer->form.window) {
    layer->window.push_back(extent(axis));
    kernel.window *= extent(axis);
  }
  TN_TRY(numbers, numbers_as<double>(tensor));
  kernel.numbers = permuted(numbers, dims, axes);
  double norm = kernel.squared_norm();
  if (!std::isfinite(norm)) return unsupported("its weight has NaN or infinity");
  if (norm == 0) return unsupported("its weight is all zeros");
  return {};
}

void read_extents(Layer* layer) {
  Type in = layer->node.input(layer->act).type(), out = layer->node.output().type();
  if (!layer->is_conv) {  // rows of the activation, whatever their shape
    for (size_t i = 0; in.ranked && i < in.dims.size(); ++i) {
      if (static_cast<int64_t>(i) == layer->form.act_in) continue;
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
    const int64_t stride = i < strides.size() ? strides[i] : 1;
    const bool grows = layer->is_transposed();
    layer->extents_in.push_back(is_known ? in.dims[i + 2] : grows ? 1 : stride);
    layer->extents_out.push_back(is_known ? out.dims[i + 2] : grows ? stride : 1);
  }
}

}  // namespace

std::vector<double> permuted(const std::vector<double>& numbers,
                             const std::vector<int64_t>& dims,
                             const std::vector<int64_t>& order) {
  size_t rank = dims.size();
  std::vector<int64_t> strides(rank, 1), at(rank, 0);
  for (size_t i = rank; i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  std::vector<double> out;
  out.reserve(numbers.size());
  for (size_t n = 0; n < numbers.size(); ++n) {
    int64_t from = 0;
    for (size_t i = 0; i < rank; ++i)
      from += at[i] * strides[static_cast<size_t>(order[i])];
    out.push_back(numbers[static_cast<size_t>(from)]);
    for (size_t i = rank; i-- > 0;) {
      if (++at[i] < dims[static_cast<size_t>(order[i])]) break;
      at[i] = 0;
    }
  }
  return out;
}

bool has_weight(Node node) {
  const tn_quant_product* product = product_of(node);
  if (!product) return false;
  Value weight = node.input(static_cast<uint64_t>(product->weight));
  if (!weight || weight.is_constant()) return static_cast<bool>(weight);
  if (is_computed_of_constants(weight)) return true;
  const tn_op_columns* maker = weight.producer() ? weight.producer().columns() : nullptr;
  return maker && maker->quant == TN_QUANT_DEQUANTIZE;
}

Result<Layer> read_layer(Node node) {
  Layer layer;
  layer.node = node;
  TN_CHECK(read_form(&layer));
  if (is_computed_of_constants(node.input(layer.weight_input))) return unsupported(kComputedWeight);
  if (!node.input(layer.weight_input).is_constant())
    return unsupported("its weight is quantized: decompose the float model first");
  TN_CHECK(read_weight(&layer));
  read_extents(&layer);
  return layer;
}

}  // namespace tenon::decomposer

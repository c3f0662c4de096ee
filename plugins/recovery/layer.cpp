// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include <algorithm>

#include "tenon/sdk/multiplied.hpp"

namespace tenon::recovery {
namespace {

Status read_window(Layer* layer, const std::vector<int64_t>& dims) {
  const LayerForm& form = layer->form;
  if (form.weight_out != 0 || form.weight_in != 1 || form.act_in != 1)
    return unsupported("its window does not slide as a convolution's does");
  std::string_view automatic = layer->node.attr_text("auto_pad", "NOTSET");
  if (!automatic.empty() && automatic != "NOTSET" && automatic != "VALID")
    return unsupported(cat("its padding is ", automatic, ": expected numbers"));
  for (int64_t axis : form.window)
    layer->window.push_back(dims[static_cast<size_t>(axis)]);
  size_t n = layer->window.size();
  auto list = [&](const char* name, size_t size, int64_t usual) {
    std::vector<int64_t> given = layer->node.attr_ints(name);
    return given.size() == size ? given : std::vector<int64_t>(size, usual);
  };
  layer->strides = list("strides", n, 1);
  layer->dilations = list("dilations", n, 1);
  layer->pads = list("pads", 2 * n, 0);
  return {};
}

// Whether it is one number for each channel along the last axis, or along axis 1 behind the batch.
bool is_vector(Value value, int64_t n_out) {
  return value && value.is_constant() && value.dtype() == TN_F32 && value.type().rank() == 1 &&
         value.type().elements() == n_out && value.consumer_count() == 1;
}

// Follows what only adds to the sums: a bias, and the way around a residual block.
void follow_sums(Layer* layer) {
  layer->last = layer->node;
  while (!layer->around) {
    Value made = layer->made();
    if (made.consumer_count() != 1 || made.is_output()) return;
    Node next = made.consumer(0);
    if (!next.is("Add") || next.output().type().dims != made.type().dims) return;
    Value other = next.input(next.input(0) == made ? 1 : 0);
    if (other == made) return;
    if (is_vector(other, layer->n_out) && !layer->is_conv && !layer->bias) {
      layer->bias = other;
    } else if (!other.is_constant() && other.type().dims == made.type().dims) {
      layer->around = other;
    } else {
      return;
    }
    layer->last = next;
  }
}

}  // namespace

std::vector<size_t> Layer::positions() const {
  std::vector<int64_t> dims = node.input(weight).type().dims;
  std::vector<size_t> strides_of(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides_of[i - 1] = strides_of[i] * static_cast<size_t>(dims[i]);
  auto step = [&](int64_t axis) { return strides_of[static_cast<size_t>(axis)]; };
  const int64_t channels = n_in / taps();
  std::vector<size_t> out;
  for (int64_t o = 0; o < n_out; ++o)
    for (int64_t column = 0; column < n_in; ++column) {
      size_t at = static_cast<size_t>(o) * step(form.weight_out) +
                  static_cast<size_t>(column % channels) * step(form.weight_in);
      int64_t left = column / channels;
      for (size_t i = window.size(); i-- > 0; left /= window[i])
        at += static_cast<size_t>(left % window[i]) * step(form.window[i]);
      out.push_back(at);
    }
  return out;
}

bool has_weight(Node node) {
  const tn_op_columns* columns = node.columns();
  if (!columns || columns->n_products == 0) return false;
  Value weight = node.input(static_cast<uint64_t>(columns->products[0].weight));
  return weight && (weight.is_constant() || is_computed_of_constants(weight));
}

Result<Layer> read_layer(Node node) {
  const tn_op_columns& columns = *node.columns();
  if (columns.n_products != 1)
    return unsupported(cat("it has ", columns.n_products, " products: expected 1"));
  if (columns.quant_flags & TN_QUANT_FUSED)
    return unsupported("it does more with its sums than add a bias");
  const tn_quant_product& product = columns.products[0];
  Layer layer;
  layer.node = node;
  layer.act = static_cast<uint64_t>(product.act);
  layer.weight = static_cast<uint64_t>(product.weight);
  Value weight = node.input(layer.weight);
  if (is_computed_of_constants(weight)) return unsupported(kComputedWeight);
  if (weight.dtype() != TN_F32)
    return unsupported(cat("its weight is ", dtype_name(weight.dtype()), ": expected float32"));
  if (weight.consumer_count() != 1)
    return unsupported(cat("its weight is shared by ", weight.consumer_count(), " nodes"));
  std::optional<LayerForm> form = layer_form(node, layer.act, layer.weight);
  if (!form) return unsupported("its row does not say that it is a product or a convolution");
  if (form->is_stack) return unsupported("its weight is a stack of matrices: expected one matrix");
  layer.form = *form;
  layer.is_conv = form->slides || !form->window.empty();
  layer.groups = std::max<int64_t>(form->groups, 1);
  std::vector<int64_t> dims = weight.type().dims;
  layer.n_out = dims[static_cast<size_t>(form->weight_out)];
  layer.n_in = dims[static_cast<size_t>(form->weight_in)];
  if (layer.is_conv) TN_CHECK(read_window(&layer, dims));
  layer.n_in *= layer.taps();
  Type in = layer.read().type();
  if (!in.ranked) return unsupported("the rank of its input is not known");
  if (!layer.is_conv && form->act_in != static_cast<int64_t>(in.rank()) - 1)
    return unsupported("it does not sum over the last axis of its input");
  if (product.bias >= 0) {
    Value bias = node.input(static_cast<uint64_t>(product.bias));
    if (bias && !is_vector(bias, layer.n_out))
      return unsupported(cat("its bias ", bias.name(), " is not its own vector of ", layer.n_out));
    layer.bias = bias;
  }
  follow_sums(&layer);
  return layer;
}

Result<std::vector<Fit>> present_fits(const Layer& layer) {
  Tensor weight = layer.node.input(layer.weight).constant();
  Tensor bias = layer.bias ? layer.bias.constant() : Tensor();
  std::vector<size_t> positions = layer.positions();
  int64_t rows = layer.n_out / layer.groups;
  std::vector<Fit> fits;
  for (int64_t g = 0; g < layer.groups; ++g) {
    Fit fit{Matrix(rows, layer.n_in), Vector::Zero(rows)};
    for (int64_t r = 0; r < rows; ++r) {
      auto o = static_cast<size_t>(g * rows + r);
      for (int64_t c = 0; c < layer.n_in; ++c)
        fit.weight(r, c) = double{weight.data<
            float>()[positions[o * static_cast<size_t>(layer.n_in) + static_cast<size_t>(c)]]};
      if (bias) fit.bias[r] = double{bias.data<float>()[o]};
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

namespace {

Status replace_constant(EditView edit, Value constant, const Tensor& tensor) {
  std::string name(constant.name());
  TN_CHECK(services.edit->set_value_name(edit.raw, constant.id, str(cat(name, "_before"))));
  TN_TRY(made, edit.constant(tensor, name));
  return edit.replace(constant, made);
}

}  // namespace

Status write_fits(EditView edit, const Layer& layer, const std::vector<Fit>& fits) {
  Value constant = layer.node.input(layer.weight);
  TN_TRY(weight, Tensor::copy_of(edit.ctx(), constant.constant().dl()));
  std::vector<float> bias;
  std::vector<size_t> positions = layer.positions();
  size_t at = 0;
  for (const Fit& fit : fits)
    for (int64_t r = 0; r < fit.weight.rows(); ++r) {
      for (int64_t c = 0; c < fit.weight.cols(); ++c)
        weight.data<float>()[positions[at++]] = static_cast<float>(fit.weight(r, c));
      bias.push_back(static_cast<float>(fit.bias[r]));
    }
  TN_CHECK(replace_constant(edit, constant, weight));
  if (!layer.bias) return {};
  std::vector<int64_t> dims{layer.n_out};
  TN_TRY(vector, Tensor::of<float>(edit.ctx(), TN_F32, dims, bias));
  return replace_constant(edit, layer.bias, vector);
}

}  // namespace tenon::recovery

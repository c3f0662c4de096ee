// SPDX-License-Identifier: Apache-2.0
#include "dynamic_form.hpp"

#include "tenon/sdk/alike.hpp"

#include "graph_outputs.hpp"

namespace tenon::quantizer {
namespace {

// Its one reader of this type.
Node only_reader(Value v, std::string_view type) {
  if (v.consumer_count() != 1 || v.is_output()) return {};
  uint64_t input = 0;
  Node node = v.consumer(0, &input);
  return node.is(type) ? node : Node();
}

Value other_operand(Node mul, Value v) {
  return mul.input(0) == v ? mul.input(1) : mul.input(0);
}

// The constant c of a factor that is scale * c.
Value weight_scale(Value factor, Value scale) {
  Node mul = factor.producer();
  if (!mul || !mul.is("Mul") || (mul.input(0) != scale && mul.input(1) != scale)) return {};
  Value c = other_operand(mul, scale);
  return c.is_constant() && c.dtype() == TN_F32 ? c : Value();
}

struct Form {
  Node integer, product;  // the product of integers, and what multiplies it with all scales
  Value x, weight, zero, scale;
  bool is_matrix = false;
};

std::optional<Form> form_of(Node node) {
  Form out;
  out.integer = node;
  out.is_matrix = node.is("MatMulInteger");
  if (!out.is_matrix && !node.is("ConvInteger")) return std::nullopt;
  Node rounding = node.input(0).producer();
  if (!rounding || !rounding.is("DynamicQuantizeLinear") || node.input(2) != rounding.output(2))
    return std::nullopt;
  out.x = rounding.input(0);
  out.weight = node.input(1);
  out.zero = node.input(3);
  if (!out.weight.is_constant() || (out.zero && !out.zero.is_constant())) return std::nullopt;
  Node cast = only_reader(node.output(), "Cast");
  if (!cast || cast.output().dtype() != TN_F32) return std::nullopt;
  out.product = only_reader(cast.output(), "Mul");
  if (!out.product) return std::nullopt;
  out.scale = weight_scale(other_operand(out.product, cast.output()), rounding.output(1));
  return out.scale ? std::optional(out) : std::nullopt;
}

// One number, or one for each entry of the weight's axis, as a number or a vector of `n`.
Result<Value> spread(EditView edit, Value v, int64_t n) {
  const Tensor tensor = v.constant();
  const DLTensor t = tensor.dl();
  const int64_t have = element_count(t);
  std::vector<int64_t> dims;
  if (n > 1) dims = {n};
  TN_TRY(made, Tensor::zeros(edit.ctx(), dtype_of(t), dims));
  const uint64_t each = bytes_of(dtype_of(t), 1);
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(data_of<const char>(t) + (have == 1 ? 0 : i) * static_cast<int64_t>(each), each,
                data_of<char>(made.dl()) + i * static_cast<int64_t>(each));
  return edit.constant(made);
}

// Results are the last axis of a product, and the second of an image's [n, results, spatial..].
bool lies_along_results(const std::vector<int64_t>& dims, const Form& form) {
  const size_t behind = form.is_matrix ? 0 : form.weight.type().rank() - 2;
  if (dims.size() <= behind) return false;
  const size_t axis = dims.size() - 1 - behind;
  for (size_t i = 0; i < dims.size(); ++i)
    if (i != axis && dims[i] != 1) return false;
  return true;
}

// False where scales or zero points lie along another axis than results do.
Result<bool> replace(EditView edit, const Form& form) {
  const Type weight = form.weight.type();
  const int64_t axis = form.is_matrix ? static_cast<int64_t>(weight.rank()) - 1 : 0;
  const int64_t results = weight.dims[static_cast<size_t>(axis)];
  const int64_t scales = form.scale.type().elements();
  const int64_t zeros = form.zero ? form.zero.type().elements() : 1;
  for (int64_t n : {scales, zeros})
    if (n != 1 && n != results) return false;
  if (scales > 1 && !lies_along_results(form.scale.type().dims, form)) return false;
  const int64_t n = std::max(scales, zeros);
  TN_TRY(scale, spread(edit, form.scale, n));
  std::vector<Value> stored{form.weight, scale};
  if (form.zero) {
    TN_TRY(zero, spread(edit, form.zero, n));
    stored.push_back(zero);
  }
  TN_TRY(floats, edit.op("DequantizeLinear", stored, {{"axis", axis}}));
  const Node node = form.integer;
  TN_TRY(made, edit.add({.type = form.is_matrix ? "MatMul" : "Conv",
                         .inputs = {form.x, floats},
                         .attrs = attributes_of(node),
                         .name = cat(node.name(), "_float"),
                         .scope = node.scope()}));
  TN_CHECK(give_out(edit, form.product.output(), made.output()));
  TN_CHECK(edit.replace(form.product.output(), made.output()));
  return true;
}

}  // namespace

Result<uint64_t> float_products(EditView edit) {
  uint64_t count = 0;
  for (Node node : edit.graph().nodes()) {
    std::optional<Form> form = form_of(node);
    if (!form) continue;
    TN_TRY(is_done, replace(edit, *form));
    count += is_done;
  }
  return count;
}

}  // namespace tenon::quantizer

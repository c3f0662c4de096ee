// SPDX-License-Identifier: Apache-2.0
#include "quantization.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/sdk/number.hpp"

namespace tenon::cuda {
namespace {

bool is_signed(uint32_t dtype) {
  return TN_DTYPE_CODE(dtype) == kDLInt;
}

// round(x / scale) + zero within the type's range; NaN is zero. Of 8-bit floats, x / scale + zero:
// the conversion rounds and saturates.
void write_quantize(uint32_t dtype, bool has_zero, NodeInfo* node) {
  backend::ProgramBuilder p;
  uint32_t x = p.input(0), scale = p.input(1);
  uint32_t zero = has_zero ? p.input(2) : p.number(0);
  uint32_t ratio = p.emit(TN_EXPR_DIV, x, scale);
  if (is_float8(dtype)) return p.finish(p.emit(TN_EXPR_ADD, ratio, zero), node);
  int bits = static_cast<int>(TN_DTYPE_BITS(dtype)) - (is_signed(dtype) ? 1 : 0);
  double most = std::ldexp(1.0, bits) - 1;
  uint32_t value = p.emit(TN_EXPR_ADD, p.emit(TN_EXPR_ROUND, ratio), zero);
  uint32_t low = p.number(is_signed(dtype) ? -most - 1 : 0), high = p.number(most);
  uint32_t held = p.emit(TN_EXPR_MIN, p.emit(TN_EXPR_MAX, value, low), high);
  p.finish(p.emit(TN_EXPR_SELECT, p.emit(TN_EXPR_ISNAN, ratio), zero, held), node);
}

void write_dequantize(bool has_zero, NodeInfo* node) {
  backend::ProgramBuilder p;
  uint32_t x = p.input(0), scale = p.input(1);
  if (has_zero) x = p.emit(TN_EXPR_SUB, x, p.input(2));
  p.finish(p.emit(TN_EXPR_MUL, x, scale), node);
}

std::string why_not_bound(const Imported& graph, const NodeInfo& node, bool forward) {
  if (node.input(0) == kNone || node.input(1) == kNone) return "an absent operand";
  if (node.source.attr_int("block_size", 0) != 0) return "scales in blocks";
  for (int value : node.inputs) {
    if (value != kNone && !graph.value(value).is_known) return {};  // why_not says more
  }
  const ValueInfo& x = graph.value(node.inputs[0]);
  const ValueInfo& scale = graph.value(node.inputs[1]);
  if (forward && is_float8(graph.value(node.outputs[0]).dtype) &&
      node.source.attr_int("saturate", 1) == 0) {
    return "8-bit floats that do not saturate";
  }
  if (scale.count() == 1) return {};
  int64_t axis = node.source.attr_int("axis", 1), rank = static_cast<int64_t>(x.dims.size());
  bool is_along = scale.dims.size() == 1 && axis >= -rank && axis < rank &&
                  scale.dims[0] == x.dims[axis_of(axis, x.dims.size())];
  return is_along ? "" : "scales in blocks";
}

}  // namespace

void bind_quantization(const Imported& graph, NodeInfo* node) {
  bool forward = node->op == "QuantizeLinear";
  if (!forward && node->op != "DequantizeLinear") return;
  node->unbound = why_not_bound(graph, *node, forward);
  if (!node->unbound.empty()) return;
  bool has_zero = node->input(2) != kNone;
  if (forward) {
    write_quantize(graph.value(node->outputs[0]).dtype, has_zero, node);
  } else {
    write_dequantize(has_zero, node);
  }
  const Dims& x = graph.value(node->inputs[0]).dims;
  const ValueInfo& scale = graph.value(node->inputs[1]);
  Dims along;
  if (scale.is_known && scale.count() != 1) {
    along.assign(x.size() - axis_of(node->source.attr_int("axis", 1), x.size()), 1);
    along[0] = scale.count();
  }
  node->shapes = {x, along, along};
  node->shapes.resize(node->inputs.size());
}

std::string read_params(const Imported& graph, const NodeInfo& node, QuantParams* out) {
  const ValueInfo& scale = graph.value(node.inputs[1]);
  if (!scale.constant) return cat("scale ", scale.name, " is not constant");
  Result<std::vector<float>> scales = numbers_as<float>(scale.constant.dl());
  if (!scales.ok()) return scales.status().text();
  out->scales = *scales;
  out->zeros = {0};
  const Dims& dims = graph.value(node.inputs[0]).dims;
  out->axis = dims.empty() ? 0 : axis_of(node.source.attr_int("axis", 1), dims.size());
  if (node.input(2) == kNone) return {};
  const ValueInfo& zero = graph.value(node.inputs[2]);
  if (!zero.constant) return cat("zero point ", zero.name, " is not constant");
  DLTensor view = zero.constant.dl();
  if (is_float8(zero.dtype)) {
    const auto* stored = data_of<const unsigned char>(view);
    bool is_zero = std::all_of(stored, stored + element_count(view),
                               [](unsigned char value) { return (value & 0x7f) == 0; });
    return is_zero ? "" : "zero points of 8-bit floats";
  }
  Result<std::vector<int64_t>> zeros = numbers_as<int64_t>(view);
  if (!zeros.ok()) return zeros.status().text();
  out->zeros = *zeros;
  return {};
}

}  // namespace tenon::cuda

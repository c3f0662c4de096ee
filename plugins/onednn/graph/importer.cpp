// SPDX-License-Identifier: Apache-2.0
#include "importer.hpp"

#include <utility>

#include "kernels/exact_product.h"

namespace tenon::onednn {
namespace {

struct TypeRow {
  uint32_t dtype;
  ElementType type;
};
constexpr TypeRow kTypes[] = {
    {TN_F32, ElementType::kF32},
    {TN_BF16, ElementType::kBf16},
    {TN_F16, ElementType::kF16},
    {TN_U8, ElementType::kU8},
    {TN_I8, ElementType::kS8},
    {TN_I32, ElementType::kI32},
    {TN_I64, ElementType::kI64},
    {TN_BOOL, ElementType::kBool},
    {TN_F64, ElementType::kF64},
    {TN_U16, ElementType::kU16},
    {TN_I16, ElementType::kS16},
    {TN_U32, ElementType::kU32},
    {TN_U64, ElementType::kU64},
    {TN_U4, ElementType::kU4},
    {TN_I4, ElementType::kS4},
    {TN_DTYPE(kDLUInt, 2), ElementType::kU2},
    {TN_DTYPE(kDLInt, 2), ElementType::kS2},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), ElementType::kF4E2M1},
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), ElementType::kF8E4M3},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), ElementType::kF8E4M3Fnuz},
    {TN_DTYPE(kDLFloat8_e5m2, 8), ElementType::kF8E5M2},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), ElementType::kF8E5M2Fnuz},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), ElementType::kF8E8M0},
};

// A QuantizeLinear or DequantizeLinear that is not one between f32 and integers of 8 bits (32 as a
// sum, 4 as a weight).
bool is_unusual_quantization(const Graph& graph, const Node& node) {
  const bool forward = node.op == "QuantizeLinear";
  if (!forward && node.op != "DequantizeLinear") return false;
  if (node.inputs.size() < 2 || node.inputs[1] == kNone || node.output(0) == kNone) return false;
  const Value& from = graph.values[node.inputs[0]];
  const Value& to = graph.values[node.outputs[0]];
  const ElementType stored = forward ? to.type : from.type, real = forward ? from.type : to.type;
  const bool is_weight = kernels::is_int4_type(stored) && !forward && from.data != nullptr;
  if (is_weight) return false;
  const bool is_usual = stored == ElementType::kU8 || stored == ElementType::kS8 ||
                        (!forward && stored == ElementType::kI32);
  return !is_usual || real != ElementType::kF32 ||
         graph.values[node.inputs[1]].type != ElementType::kF32;
}

// Of itself, not by its row's default.
bool states(const tenon::Node& node, std::string_view attribute) {
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i)
    if (view(services.graph->attr_name(node.graph, node.id, i)) == attribute) return true;
  return false;
}

// A product that oneDNN has not.
bool is_exact_product(const Graph& graph, const Node& node) {
  return node.op == "MatMul" && node.inputs.size() == 2 &&
         kernels::is_exact_product_type(graph.values[node.inputs[0]].type);
}

}  // namespace

ElementType element_of(uint32_t dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.type;
  }
  return ElementType::kCount;
}

Result<Graph> import_graph(const tn_graph* source) {
  TN_TRY(graph, backend::import_graph<Graph>(source));
  for (Value& value : graph.values) {
    value.type = element_of(value.dtype);
    if (value.type != ElementType::kCount) continue;
    value.is_known = false;
    value.dims.clear();
  }
  for (Node& node : graph.nodes) {
    if (is_unusual_quantization(graph, node) || is_exact_product(graph, node)) node.op += ".any";
    if (!states(node.source, "body")) continue;
    const tn_any body = node.source.attr("body");
    if (body.tag != TN_ANY_GRAPH) continue;
    TN_TRY(made, import_graph(static_cast<const tn_graph*>(body.v.p)));
    graph.bodies[node.source.id] = std::make_shared<Graph>(std::move(made));
  }
  return std::move(graph);
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// Before:  a node of another domain than ONNX's that computes with floats and stands for several
//          operators, such as Attention or SkipLayerNormalization of com.microsoft; with option
//          `operators`, any node of these operators.
// After:   these operators, by its row's `decompose`.
// Needs:   its row has neither axes, expression nor a grammar of its own (`quant`, `coupling`):
//          passes would leave its weights as they are. Nodes on stored integers stay
//          (quantizer.dequantize expands these), and those whose sizes are not known enough. Runs
//          only when it is named: a runtime that has the operator is faster with it.
#include <algorithm>
#include <set>
#include <string>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

bool is_stored(Value value) {
  const uint32_t type = value ? value.dtype() : TN_F32;
  const bool is_integer = TN_DTYPE_CODE(type) == kDLInt || TN_DTYPE_CODE(type) == kDLUInt;
  return is_integer && TN_DTYPE_BITS(type) <= 8;
}
bool is_expandable(Node node, const Settings& settings) {
  const tn_op* row = node.row();
  if (!settings.operators.empty())
    return row && row->decompose && std::ranges::count(settings.operators, node.type()) > 0;
  if (node.domain().empty() || !row || !row->decompose || row->expr.len > 0) return false;
  if (row->axes.len > 0 || row->quant.len > 0 || row->coupling.len > 0) return false;
  return std::ranges::none_of(node.inputs(), is_stored);
}

// What a decomposition makes may be expandable itself; a node whose decomposition fails stays.
Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  int64_t changed = 0;
  std::set<std::string> stay;
  for (bool is_done = false; !is_done;) {
    is_done = true;
    TN_TRY(edit, Edit::begin(graph));
    for (Node node : edit.graph().nodes()) {
      if (!settings.covers(node) || !is_expandable(node, settings) ||
          stay.contains(std::string(node.name())))
        continue;
      if (!Status(services.op->decompose(edit.raw, node.id)).ok()) {
        stay.insert(std::string(node.name()));
        continue;
      }
      is_done = false;
      ++changed;
    }
    TN_CHECK(edit.commit());
  }
  return changed;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE_WITH(expand,
                 "fusion.expand",
                 "nodes of other domains than ONNX's as the operators that they stand for",
                 tenon::fusion::run,
                 R"(, "operators": {"type": ["array", "string"], "items": {"type": "string"},
                      "description": "expands these operators instead, of any domain, such as Attention"})")

// SPDX-License-Identifier: Apache-2.0
#include "opset.hpp"

#include <algorithm>
#include <iterator>

#include "dtypes.hpp"

namespace tenon::onnx_plugin {
namespace {

constexpr uint64_t kMaskedInputs = 8;
constexpr uint64_t kMaskedOutputs = 4;

struct OpsetRow {  // sorted by type, then since
  std::string_view type;
  int64_t since;
  uint64_t most_inputs;
  uint64_t required_outputs;
  std::string_view attributes;  // ",axis,epsilon,"
  uint32_t types[kMaskedInputs + kMaskedOutputs];
};
struct IrRow {
  int64_t opset;
  int64_t ir;
};
#include "opset_rows.inc"

bool takes_type(uint32_t mask, Value value) {
  int32_t onnx_type = value ? onnx_of_dtype(value.dtype()) : 0;
  return onnx_type == 0 || (mask >> onnx_type & 1u);
}

bool takes(const OpsetRow& row, const Node& node) {
  uint64_t captures = static_cast<uint64_t>(node.attr_int("captures"));
  if (node.n_inputs() - std::min(captures, node.n_inputs()) > row.most_inputs) return false;
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(node.graph, node.id, i));
    if (name != "captures" && row.attributes.find(cat(",", name, ",")) == row.attributes.npos)
      return false;
  }
  for (uint64_t i = 0; i < std::min(node.n_inputs(), kMaskedInputs); ++i)
    if (!takes_type(row.types[i], node.input(i))) return false;
  for (uint64_t i = 0; i < std::min(node.n_outputs(), kMaskedOutputs); ++i)
    if (!takes_type(row.types[kMaskedInputs + i], node.output(i))) return false;
  return true;
}

const OpsetRow* first_row(std::string_view type) {
  return std::lower_bound(std::begin(kOpsetRows), std::end(kOpsetRows), type,
                          [](const OpsetRow& a, std::string_view b) { return a.type < b; });
}

}  // namespace

uint64_t required_outputs(const Node& node) {
  const OpsetRow* row = node.domain().empty() ? first_row(node.type()) : std::end(kOpsetRows);
  return row != std::end(kOpsetRows) && row->type == node.type() ? row->required_outputs : 0;
}

int64_t lowest_opset(const Node& node) {
  if (!node.domain().empty()) return kLowestWritten;
  std::string_view type = node.type();
  const OpsetRow* row = first_row(type);
  int64_t first = kLowestWritten;
  for (auto at = row; at != std::end(kOpsetRows) && at->type == type; ++at) {
    if (takes(*at, node)) return std::max(at->since, kLowestWritten);
    if (at == row) first = std::max(at->since, kLowestWritten);
  }
  return first;  // no definition takes it: the lowest that knows the operator
}

int64_t ir_version_of(int64_t opset) {
  for (const IrRow& row : kIrRows)
    if (row.opset == opset) return row.ir;
  return std::rbegin(kIrRows)->ir;
}

}  // namespace tenon::onnx_plugin

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
  uint64_t types[kMaskedInputs + kMaskedOutputs];
  uint8_t variables[kMaskedInputs + kMaskedOutputs];
};
struct IrRow {
  int64_t opset;
  int64_t ir;
};
#include "opset_rows.inc"

// An input or output where a row says something of it.
struct Typed {
  size_t at;  // in the row
  uint32_t kind;
  int32_t onnx_type;
};
std::vector<Typed> typed_of(const Node& node) {
  std::vector<Typed> out;
  auto add = [&](Value value, uint64_t at) {
    const tn_type type = value ? value.raw_type() : tn_type{};
    const int32_t onnx_type = value ? onnx_of_dtype(type.dtype) : 0;
    if (onnx_type != 0) out.push_back({at, type.kind, onnx_type});
  };
  for (uint64_t i = 0; i < std::min(node.n_inputs(), kMaskedInputs); ++i)
    add(node.input(i), i);
  for (uint64_t i = 0; i < std::min(node.n_outputs(), kMaskedOutputs); ++i)
    add(node.output(i), kMaskedInputs + i);
  return out;
}

bool takes_type(const OpsetRow& row, const Typed& value) {
  const int of = value.kind == TN_KIND_TENSOR ? 0 : 32;
  return row.types[value.at] >> (of + value.onnx_type) & 1u;
}

// What has one type variable has one element type.
bool agree(const OpsetRow& row, const std::vector<Typed>& values) {
  for (const Typed& a : values)
    for (const Typed& b : values)
      if (row.variables[a.at] > 0 && row.variables[a.at] == row.variables[b.at] &&
          a.kind == b.kind && a.onnx_type != b.onnx_type)
        return false;
  return true;
}

bool takes(const OpsetRow& row, const Node& node) {
  uint64_t captures = static_cast<uint64_t>(node.attr_int("captures"));
  if (node.n_inputs() - std::min(captures, node.n_inputs()) > row.most_inputs) return false;
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i) {
    std::string_view name = view(services.graph->attr_name(node.graph, node.id, i));
    if (name != "captures" && row.attributes.find(cat(",", name, ",")) == row.attributes.npos)
      return false;
  }
  const std::vector<Typed> values = typed_of(node);
  return agree(row, values) &&
         std::ranges::all_of(values, [&](const Typed& one) { return takes_type(row, one); });
}

// Why no definition takes a node's types, of those that would be invalid files; empty: other
// reasons, as an attribute that ONNX does not have.
std::string why_no(const OpsetRow& newest, const Node& node) {
  const std::vector<Typed> values = typed_of(node);
  if (!agree(newest, values)) return "inputs and outputs of one element type, got several";
  for (const Typed& one : values)
    if (one.kind != TN_KIND_TENSOR && !takes_type(newest, one))
      return cat("sequences and optional values of a type that ONNX has, got ",
                 dtype_name(dtype_of_onnx(one.onnx_type)));
  return "";
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

Result<int64_t> lowest_opset(const Node& node) {
  if (!node.domain().empty()) return kLowestWritten;
  std::string_view type = node.type();
  const OpsetRow* row = first_row(type);
  int64_t first = kLowestWritten;
  std::string why;
  for (auto at = row; at != std::end(kOpsetRows) && at->type == type; ++at) {
    if (takes(*at, node)) return std::max(at->since, kLowestWritten);
    if (at == row) first = std::max(at->since, kLowestWritten);
    why = why_no(*at, node);
  }
  if (!why.empty())
    return unsupported(cat("operator ", type, " in a file of ONNX: expected ", why));
  return first;  // no definition takes it: the lowest that knows the operator
}

int64_t ir_version_of(int64_t opset) {
  for (const IrRow& row : kIrRows)
    if (row.opset == opset) return row.ir;
  return std::rbegin(kIrRows)->ir;
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
// Scale and bias were one number per group and became one per channel.
#include "rows.hpp"

namespace tenon::onnx_plugin {
namespace {

Result<Value> per_channel(const EditView& edit, Draft& node, size_t i, int64_t channels) {
  int64_t groups = node.attr_int("num_groups", 0);
  TN_TRY(column, edit.ints({groups, 1}));
  TN_TRY(spread, edit.ints({groups, channels / groups}));
  TN_TRY(flat, edit.ints({channels}));
  TN_TRY(split, edit.op("Reshape", {node.input(i), column}));
  TN_TRY(expanded, edit.op("Expand", {split, spread}));
  return edit.op("Reshape", {expanded, flat});
}

}  // namespace

Status group_normalization_21(const EditView& edit, Draft& node) {
  int64_t groups = node.attr_int("num_groups", 0);
  Type type = node.input(0).type();
  if (!type.ranked || type.rank() < 2 || type.dims[1] < 0)
    return unsupported("input 0: expected a known number of channels, got none");
  if (groups <= 0 || type.dims[1] % groups != 0)
    return invalid(cat("attribute num_groups: expected a divisor of ", type.dims[1],
                       " channels, got ", groups));
  for (size_t i = 1; i <= 2; ++i) {
    TN_TRY(value, per_channel(edit, node, i, type.dims[1]));
    node.set_input(i, value);
  }
  return {};
}

}  // namespace tenon::onnx_plugin

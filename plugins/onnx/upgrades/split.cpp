// SPDX-License-Identifier: Apache-2.0
// The attribute split became input 1 at 13; at 18 equal parts must be asked for by their number.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status split_13(const EditView& edit, Draft& node) {
  std::optional<std::vector<int64_t>> parts = node.take_ints("split");
  if (!parts) return {};
  TN_TRY(value, edit.ints(*parts, node.part("split")));
  node.set_input(1, value);
  return {};
}

Status split_18(const EditView&, Draft& node) {
  if (!node.input(1)) node.set_int("num_outputs", static_cast<int64_t>(node.outputs.size()));
  return {};
}

}  // namespace tenon::onnx_plugin

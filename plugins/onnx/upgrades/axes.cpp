// SPDX-License-Identifier: Apache-2.0
// The attribute axes became input 1: Squeeze, Unsqueeze, Reduce*.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status axes_to_input(const EditView& edit, Draft& node) {
  std::optional<std::vector<int64_t>> axes = node.take_ints("axes");
  if (!axes) return {};
  TN_TRY(value, edit.ints(*axes, node.part("axes")));
  node.set_input(1, value);
  return {};
}

}  // namespace tenon::onnx_plugin

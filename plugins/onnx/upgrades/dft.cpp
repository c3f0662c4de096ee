// SPDX-License-Identifier: Apache-2.0
// The attribute axis (default 1) became input 2 (default -2).
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status dft_20(const EditView& edit, Draft& node) {
  int64_t axis = node.take_int("axis").value_or(1);
  TN_TRY(value, edit.constant<int64_t>(TN_I64, {}, {axis}, node.part("axis")));
  node.set_input(2, value);
  return {};
}

}  // namespace tenon::onnx_plugin

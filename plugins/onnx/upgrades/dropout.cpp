// SPDX-License-Identifier: Apache-2.0
// The attribute ratio became input 1. Dropout of an exported model does nothing: input 2, which
// says whether it trains, stays absent.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status dropout_12(const EditView& edit, Draft& node) {
  std::optional<float> ratio = node.take_float("ratio");
  if (!ratio) return {};
  TN_TRY(value, edit.constant<float>(TN_F32, {}, {*ratio}, node.part("ratio")));
  node.set_input(1, value);
  return {};
}

}  // namespace tenon::onnx_plugin

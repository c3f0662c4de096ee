// SPDX-License-Identifier: Apache-2.0
// The attributes pads and value became inputs 1 and 2.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status pad_11(const EditView& edit, Draft& node) {
  std::optional<std::vector<int64_t>> pads = node.take_ints("pads");
  if (!pads) return invalid("attribute pads: expected a list, got none");
  TN_TRY(amounts, edit.ints(*pads, node.part("pads")));
  node.set_input(1, amounts);
  std::optional<float> fill = node.take_float("value");
  if (!fill || *fill == 0) return {};
  TN_TRY(value, edit.constant<float>(TN_F32, {}, {*fill}, node.part("value")));
  node.set_input(2, value);
  uint32_t dtype = node.input(0).dtype();
  if (dtype == TN_F32 || dtype == TN_DTYPE_NONE) return {};
  TN_TRY(cast, edit.op("CastLike", {value, node.input(0)}));
  node.set_input(2, cast);
  return {};
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
// Upsample took scales as an attribute, then as an input, then became Resize. Until 11 both mapped
// coordinates the asymmetric way, and nearest meant the one below.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status upsample_9(const EditView& edit, Draft& node) {
  std::optional<std::vector<float>> scales = node.take_floats("scales");
  if (!scales) return invalid("attribute scales: expected a list, got none");
  TN_TRY(value, edit.constant<float>(TN_F32, {static_cast<int64_t>(scales->size())}, *scales,
                                     node.part("scales")));
  node.set_input(1, value);
  return {};
}

Status upsample_to_resize(const EditView&, Draft& node) {
  node.type = "Resize";
  return {};
}

Status resize_11(const EditView&, Draft& node) {
  Value scales = node.input(1);
  node.inputs.resize(1);
  node.set_input(2, scales);
  node.set_text("coordinate_transformation_mode", "asymmetric");
  std::string mode = node.attr_text("mode", "nearest");
  if (mode == "bilinear") node.set_text("mode", "linear");
  if (mode == "nearest") node.set_text("nearest_mode", "floor");
  return {};
}

}  // namespace tenon::onnx_plugin

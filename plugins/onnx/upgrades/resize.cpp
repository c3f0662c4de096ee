// SPDX-License-Identifier: Apache-2.0
// Upsample took scales as an attribute, then as an input, then became Resize. Until 11 both mapped
// coordinates the asymmetric way, and nearest meant the one below when growing, the one above when
// shrinking. tf_half_pixel_for_nn went at 13.
#include <algorithm>

#include "rows.hpp"

namespace tenon::onnx_plugin {
namespace {

// The rounding of Resize 10, by which way its axes go.
Result<std::string> nearest_of_10(Value scales) {
  if (!scales || !scales.is_constant() || scales.dtype() != TN_F32) return std::string("floor");
  DLTensor tensor = scales.constant().dl();
  const float* first = data_of<float>(tensor);
  auto [least, most] = std::minmax_element(first, first + element_count(tensor));
  if (least == most || *least >= 1) return std::string("floor");
  if (*most > 1)
    return unsupported(cat("scales: expected all up to 1 or all from 1 at opset 10, got ", *least,
                           " and ", *most));
  return std::string("ceil");
}

}  // namespace

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
  if (mode != "nearest") return {};
  TN_TRY(rounding, nearest_of_10(scales));
  node.set_text("nearest_mode", rounding);
  return {};
}

// floor((i + 0.5) / scale), which is half_pixel with halves rounded up.
Status resize_13(const EditView&, Draft& node) {
  if (node.attr_text("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn") return {};
  if (node.attr_text("mode", "nearest") != "nearest" ||
      node.attr_text("nearest_mode", "round_prefer_floor") != "floor")
    return unsupported("tf_half_pixel_for_nn: expected mode nearest and nearest_mode floor");
  node.set_text("coordinate_transformation_mode", "half_pixel");
  node.set_text("nearest_mode", "round_prefer_ceil");
  return {};
}

}  // namespace tenon::onnx_plugin

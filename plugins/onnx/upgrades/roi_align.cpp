// SPDX-License-Identifier: Apache-2.0
// The default of coordinate_transformation_mode, new at 16, is not what was done before.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status roi_align_16(const EditView&, Draft& node) {
  node.set_text("coordinate_transformation_mode", "output_half_pixel");
  return {};
}

}  // namespace tenon::onnx_plugin

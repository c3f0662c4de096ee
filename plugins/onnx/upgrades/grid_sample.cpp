// SPDX-License-Identifier: Apache-2.0
// The modes bilinear and bicubic became linear and cubic.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status grid_sample_20(const EditView&, Draft& node) {
  std::string mode = node.attr_text("mode", "bilinear");
  if (mode == "bilinear") node.set_text("mode", "linear");
  if (mode == "bicubic") node.set_text("mode", "cubic");
  return {};
}

}  // namespace tenon::onnx_plugin

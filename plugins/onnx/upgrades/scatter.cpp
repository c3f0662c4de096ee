// SPDX-License-Identifier: Apache-2.0
// Scatter was renamed.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status scatter_to_scatter_elements(const EditView&, Draft& node) {
  node.type = "ScatterElements";
  return {};
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
// Scan of opset 8 ran over a batch of sequences of different lengths: another operator.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status refuse_scan_8(const EditView&, Draft&) {
  return unsupported("Scan of opset 8 is not supported: export the model with opset 9 or later");
}

}  // namespace tenon::onnx_plugin

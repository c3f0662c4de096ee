// SPDX-License-Identifier: Apache-2.0
// The attribute spatial went at 9; training became an attribute at 14 (before: five outputs).
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status batch_normalization_9(const EditView&, Draft& node) {
  if (node.take_int("spatial").value_or(1) == 0)
    return unsupported("attribute spatial: expected 1, got 0 (statistics per position)");
  return {};
}

Status batch_normalization_14(const EditView&, Draft& node) {
  if (node.outputs.size() <= 1) return {};
  // Outputs: Y, mean, var, saved_mean, saved_var. The last two are gone.
  for (size_t i = 3; i < node.outputs.size(); ++i)
    node.outputs[i].clear();
  if (node.outputs.size() > 3) node.outputs.resize(3);
  node.set_int("training_mode", 1);
  return {};
}

}  // namespace tenon::onnx_plugin

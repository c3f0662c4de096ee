// SPDX-License-Identifier: Apache-2.0
// The attributes min and max became inputs 1 and 2.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status clip_11(const EditView& edit, Draft& node) {
  constexpr std::string_view kNames[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    std::optional<float> bound = node.take_float(kNames[i]);
    if (!bound) continue;
    // Until 11 the data was float16, float or double, and the bound has its type.
    uint32_t dtype = node.input(0).dtype();
    if (dtype == TN_F64) {
      TN_TRY(value, edit.constant<double>(TN_F64, {}, {*bound}, node.part(kNames[i])));
      node.set_input(i + 1, value);
      continue;
    }
    TN_TRY(value, edit.constant<float>(TN_F32, {}, {*bound}, node.part(kNames[i])));
    node.set_input(i + 1, value);
    if (dtype != TN_F16) continue;
    TN_TRY(half, edit.op("CastLike", {value, node.input(0)}));
    node.set_input(i + 1, half);
  }
  return {};
}

}  // namespace tenon::onnx_plugin

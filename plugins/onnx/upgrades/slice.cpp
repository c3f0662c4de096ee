// SPDX-License-Identifier: Apache-2.0
// The attributes starts, ends and axes became inputs 1, 2 and 3.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status slice_10(const EditView& edit, Draft& node) {
  constexpr std::string_view kNames[] = {"starts", "ends", "axes"};
  for (size_t i = 0; i < 3; ++i) {
    std::optional<std::vector<int64_t>> list = node.take_ints(kNames[i]);
    if (!list && i == 2) break;
    if (!list) return invalid(cat("attribute ", kNames[i], ": expected a list, got none"));
    TN_TRY(value, edit.ints(*list, node.part(kNames[i])));
    node.set_input(i + 1, value);
  }
  return {};
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
// The attribute k became input 1.
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status top_k_10(const EditView& edit, Draft& node) {
  std::optional<int64_t> k = node.take_int("k");
  if (!k) return invalid("attribute k: expected a number, got none");
  TN_TRY(value, edit.ints({*k}, node.part("k")));
  node.set_input(1, value);
  return {};
}

}  // namespace tenon::onnx_plugin

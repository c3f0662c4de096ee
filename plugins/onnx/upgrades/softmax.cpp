// SPDX-License-Identifier: Apache-2.0
// Until 13, Softmax, LogSoftmax and Hardmax saw a matrix: the dimensions from axis on (default 1)
// were one row. Since then they work along one axis (default -1).
#include "rows.hpp"

namespace tenon::onnx_plugin {

Status softmax_13(const EditView& edit, Draft& node) {
  int64_t axis = node.take_int("axis").value_or(1);
  Type type = node.input(0).type();
  int64_t rank = type.ranked ? static_cast<int64_t>(type.rank()) : -1;
  if (axis == -1 || (rank > 0 && (axis == rank - 1 || axis + rank == rank - 1))) {
    node.set_int("axis", -1);
    return {};
  }
  Value data = node.input(0);
  TN_TRY(shape, edit.op("Shape", {data}));
  TN_TRY(matrix, edit.op("Flatten", {data}, {Attr("axis", axis)}));
  node.set_input(0, matrix);
  node.set_int("axis", -1);
  node.after.push_back([shape = shape](const EditView& later, Value rows) {
    // An axis of no elements stays one.
    return later.op("Reshape", {rows, shape}, {Attr("allowzero", 1)});
  });
  return {};
}

}  // namespace tenon::onnx_plugin

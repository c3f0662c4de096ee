// SPDX-License-Identifier: Apache-2.0
// Since 12 the two operands of Pow may have different types. An integer to the power of a
// floating-point number is computed in floating point, and what comes out is cut to an integer.
#include "rows.hpp"

namespace tenon::onnx_plugin {
namespace {

bool is_integer(uint32_t dtype) {
  return dtype != TN_DTYPE_NONE &&
         (TN_DTYPE_CODE(dtype) == kDLInt || TN_DTYPE_CODE(dtype) == kDLUInt);
}

}  // namespace

Status pow_of_integers(const EditView& edit, Draft& node) {
  const uint32_t base = node.input(0).dtype(), exponent = node.input(1).dtype();
  if (!is_integer(base) || is_integer(exponent) || exponent == TN_DTYPE_NONE) return {};
  // Doubles hold all integers up to 2^53.
  for (size_t i : {0, 1}) {
    TN_TRY(wide, edit.op("Cast", {node.input(i)}, {{"to", any_dtype(TN_F64)}}));
    node.set_input(i, wide);
  }
  node.after.push_back([base](const EditView& later, Value power) {
    return later.op("Cast", {power}, {{"to", any_dtype(base)}});
  });
  return {};
}

}  // namespace tenon::onnx_plugin

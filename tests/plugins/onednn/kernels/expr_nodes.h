// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes of scalar expressions, as tests of pointwise groups write them.

#include "tenon/expr.h"

namespace tenon::onednn::kernels {

inline tn_expr_node input(uint32_t i) {
  return {TN_EXPR_INPUT, i, 0, 0, 0};
}
inline tn_expr_node constant(double x) {
  return {TN_EXPR_CONST, 0, 0, 0, x};
}
inline tn_expr_node op(uint32_t code, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
  return {code, a, b, c, 0};
}

}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The descriptor of a product's operand or result: never channels-last. Of an axis of one
// entry, `descriptor` (view.hpp) may say any stride that fits a known layout; to a product it says
// where the next row begins, and one that is shorter than a row is refused by oneDNN's gemm in the
// midst of a run.

#include "view.hpp"

namespace tenon::onednn {

dnnl::memory::desc matrix_descriptor(const View& view, const Dims& dims, const Dims& strides);

inline dnnl::memory::desc matrix_descriptor(const View& view) {
  return matrix_descriptor(view, view.dims, view.strides);
}

}  // namespace tenon::onednn

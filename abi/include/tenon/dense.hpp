// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: whether a DLTensor's elements lie row-major and without gaps. Host, SDK
// and bindings include it. Pure functions: any thread.

#include <cstdint>

#include "tenon/dlpack.h"

namespace tenon {

// A stride counts where more than one element lies along its axis; a tensor without elements is
// always dense. The strides of a dense tensor may be NULL (DLPack).
inline bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  bool dense = true;
  int64_t stride = 1;
  for (int32_t axis = tensor.ndim; axis-- > 0; stride *= tensor.shape[axis]) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != stride) dense = false;
  }
  return dense;
}

}  // namespace tenon

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arithmetic over the layout of a DLTensor, with all checks; no objects, no ownership.

#include <span>
#include <vector>

#include "tenon/base.h"

#include "tenon/dense.hpp"

#include "services/status.hpp"

namespace tenon::host {

inline std::span<const int64_t> dims_of(const DLTensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}
// Row-major; the sizes must have passed element_count().
std::vector<int64_t> dense_strides(std::span<const int64_t> dims);
inline bool is_on_cpu(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost;
}
// 0 <= ndim <= kMaxRank, and a shape where there is a rank.
Status check_rank(const DLTensor& tensor);
// Known type, sizes that fit.
Result<uint64_t> dense_bytes(uint32_t dtype, std::span<const int64_t> dims);

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

namespace tenon::cuda {

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorContained:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
    case cudaErrorTensorMemoryLeak:
      return true;
    default:
      return false;
  }
}

Status Health::usable() const {
  std::lock_guard lock(mutex_);
  if (cause_.empty()) return {};
  return {TN_UNAVAILABLE,
          cat("cuda: the device failed before and cannot be used in this process: ", cause_)};
}

void Health::poison(const std::string& cause) {
  std::lock_guard lock(mutex_);
  if (cause_.empty()) cause_ = cause;
}

Status Health::check(cudaError_t error, std::string_view doing) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // what is not sticky is forgotten
  std::string text =
      cat("cuda: ", doing, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) return {TN_RESOURCE_EXHAUSTED, text};
  if (!is_sticky(error)) return {TN_INTERNAL, text};
  TN_CHECK(usable());  // the first cause is the one that counts
  poison(text);
  return {TN_INTERNAL, text};
}

}  // namespace tenon::cuda

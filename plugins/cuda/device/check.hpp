// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors of the CUDA runtime as statuses. Some stay for ever: after them nothing on the device
// works, and every later call answers with the first cause.

#include <mutex>
#include <string>

#include <cuda_runtime_api.h>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

class Health {
 public:
  // doing: what was asked for, for people.
  Status check(cudaError_t error, std::string_view doing);
  // Success while the device works.
  Status usable() const;
  void poison(const std::string& cause);

 private:
  mutable std::mutex mutex_;
  std::string cause_;
};

// True for errors after which the process must be started again to use the device.
bool is_sticky(cudaError_t error);

}  // namespace tenon::cuda

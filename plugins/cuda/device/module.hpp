// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels on a device by name: the built-in images, and generated texts through NVRTC and its
// cache.

#include <map>
#include <mutex>
#include <string>

#include "codegen/kernel_cache.hpp"
#include "device.hpp"
#include "plan.hpp"

namespace tenon::cuda {

class Kernels {
 public:
  Kernels(Device& device, KernelCache cache) : device_(device), cache_(std::move(cache)) {}
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Loaded once per name.
  Result<cudaKernel_t> get(const Launch& launch);

 private:
  Status load_images();
  Result<cudaLibrary_t> load(const char* code, const std::string& what);

  Device& device_;
  KernelCache cache_;
  std::mutex mutex_;
  std::vector<cudaLibrary_t> images_, generated_;
  std::map<std::string, cudaKernel_t> kernels_;
};

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include "codegen/compiler.hpp"
#include "images.hpp"

namespace tenon::cuda {

Kernels::~Kernels() {
  if (!device_.select().ok()) return;
  for (std::vector<cudaLibrary_t>* list : {&images_, &generated_}) {
    for (cudaLibrary_t library : *list)
      cudaLibraryUnload(library);
  }
}

Result<cudaLibrary_t> Kernels::load(const char* code, const std::string& what) {
  cudaLibrary_t library = nullptr;
  TN_CHECK(device_.health().check(
      cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0),
      cat("loading ", what)));
  return library;
}

Status Kernels::load_images() {
  if (!images_.empty()) return {};
  const std::pair<const char*, const char*> images[] = {{"channels", tenon_cuda_image_channels},
                                                        {"copy", tenon_cuda_image_copy},
                                                        {"pool", tenon_cuda_image_pool},
                                                        {"reduce", tenon_cuda_image_reduce},
                                                        {"rows", tenon_cuda_image_rows}};
  for (const auto& [name, bytes] : images) {
    TN_TRY(library, load(bytes, cat("kernels ", name)));
    images_.push_back(library);
  }
  return {};
}

Result<cudaKernel_t> Kernels::get(const Launch& launch) {
  std::lock_guard lock(mutex_);
  if (auto found = kernels_.find(launch.symbol); found != kernels_.end()) return found->second;
  TN_CHECK(device_.select());
  cudaKernel_t kernel = nullptr;
  if (launch.source.empty()) {
    TN_CHECK(load_images());
    for (cudaLibrary_t library : images_) {
      if (cudaLibraryGetKernel(&kernel, library, launch.symbol.c_str()) == cudaSuccess) break;
      cudaGetLastError();
      kernel = nullptr;
    }
    if (!kernel) return Status(TN_INTERNAL, cat("cuda: no kernel ", launch.symbol));
  } else {
    int architecture = device_.info().architecture;
    TN_TRY(version, compiler_version());
    std::string key = cat("sm_", architecture, " nvrtc ", version.major, ".", version.minor, "\n",
                          tenon_cuda_image_element, launch.source);
    TN_TRY(code, cache_.get(launch.symbol, key,
                            [&] { return compile_text(launch.source, architecture); }));
    TN_TRY(library, load(code.data(), launch.symbol));
    generated_.push_back(library);
    TN_CHECK(device_.health().check(cudaLibraryGetKernel(&kernel, library, launch.symbol.c_str()),
                                    launch.symbol));
  }
  kernels_[launch.symbol] = kernel;
  return kernel;
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where convolution runs. This header is there in builds without cuDNN too.

#include <string>

#include "tenon/sdk/status.hpp"

namespace tenon::cuda {

constexpr const char* kCudnnLibrary = "libcudnn.so.9";

// Why there is no convolution with this library, a name or a path, empty for none; empty: there is.
std::string why_no_cudnn(const std::string& library = kCudnnLibrary);

// A failure as a reason for the host, which puts the backend's name in front itself.
inline std::string reason_of(const Status& failed) {
  std::string why = failed.message();
  constexpr std::string_view kName = "cuda: ";
  return why.starts_with(kName) ? why.substr(kName.size()) : why;
}

}  // namespace tenon::cuda

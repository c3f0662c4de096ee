// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where convolution runs. This header is there in builds without cuDNN too.

#include <string>

namespace tenon::cuda {

constexpr const char* kCudnnLibrary = "libcudnn.so.9";

// Why there is no convolution with this library, a name or a path, empty for none; empty: there is.
std::string why_no_cudnn(const std::string& library = kCudnnLibrary);

}  // namespace tenon::cuda

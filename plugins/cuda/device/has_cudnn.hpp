// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tenon::cuda {

// Why there is no convolution here; empty: there is.
std::string why_no_cudnn();

}  // namespace tenon::cuda

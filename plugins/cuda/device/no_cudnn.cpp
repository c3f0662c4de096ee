// SPDX-License-Identifier: Apache-2.0
// In the place of cudnn.cpp where the build had no cuDNN.
#include "has_cudnn.hpp"

namespace tenon::cuda {

std::string why_no_cudnn(const std::string&) {
  return "convolution needs cuDNN 9, without which this plugin was built";
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
// In the place of convolutions.cpp where the build had no cuDNN.
#include "convolutions.hpp"
#include "has_cudnn.hpp"

namespace tenon::cuda {

Result<std::unique_ptr<Convolutions>> Convolutions::open(Device&, const std::string&) {
  return Status(TN_UNAVAILABLE, cat("cuda: ", why_no_cudnn()));
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions and their gradients on a device by cuDNN. One is prepared once; those of one form
// share the plan that cuDNN's heuristics chose.

#include <memory>

#include "device.hpp"
#include "plan.hpp"

namespace tenon::cuda {

class PreparedConvolution {
 public:
  virtual ~PreparedConvolution() = default;
  virtual uint64_t workspace_bytes() const = 0;
  // Addresses by the convolution's members; NULL where it has none.
  virtual Status launch(const void* x,
                        const void* w,
                        const void* bias,
                        const void* z,
                        const void* y,
                        void* workspace,
                        cudaStream_t stream) = 0;
};

class Convolutions {
 public:
  // library: cuDNN's, by name or path.
  static Result<std::unique_ptr<Convolutions>> open(Device& device, const std::string& library);
  virtual ~Convolutions() = default;
  // tf32: float32 may be multiplied with 10 bits of fraction.
  virtual Result<std::unique_ptr<PreparedConvolution>> prepare(const Convolution& convolution,
                                                               bool tf32) = 0;
};

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One convolution, or a gradient of one, as a graph of cuDNN with the execution plan that its
// heuristics like best. Made without touching a GPU.

#include <string>

#include "cudnn.hpp"
#include "plan.hpp"

namespace tenon::cuda {

// tf32: float32 may be multiplied with 10 bits of fraction.
class ConvolutionGraph {
 public:
  static Result<ConvolutionGraph> make(const Cudnn& cudnn,
                                       const Convolution& form,
                                       bool tf32,
                                       const Descriptor& device);

  uint64_t workspace_bytes() const { return workspace_bytes_; }

  // Addresses by the members of Convolution; NULL where it has none.
  struct Addresses {
    const void *x, *w, *bias, *y;
    void* workspace;
  };
  Status execute(cudnnHandle_t handle, const Addresses& at) const;

 private:
  ConvolutionGraph(const Cudnn& cudnn, Descriptor plan, uint64_t workspace, bool has_bias)
      : cudnn_(&cudnn), plan_(std::move(plan)), workspace_bytes_(workspace), has_bias_(has_bias) {}

  const Cudnn* cudnn_;
  Descriptor plan_;
  uint64_t workspace_bytes_;
  bool has_bias_;
};

// Sizes and types, for messages and to tell forms apart.
std::string form_of(const Convolution& c);

}  // namespace tenon::cuda

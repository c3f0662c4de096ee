// SPDX-License-Identifier: Apache-2.0
#pragma once
// One convolution, or a gradient of one, as a graph of cuDNN with the execution plan that its
// heuristics like best. Made without touching a GPU.

#include <string>
#include <vector>

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
    const void *x, *w, *bias, *z, *y;
    void* workspace;
  };
  Status execute(cudnnHandle_t handle, const Addresses& at) const;

 private:
  ConvolutionGraph(const Cudnn& cudnn,
                   std::vector<Descriptor> kept,
                   Descriptor plan,
                   uint64_t workspace,
                   const Convolution& form)
      : cudnn_(&cudnn),
        kept_(std::move(kept)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace),
        has_bias_(form.bias >= 0),
        has_residual_(form.z >= 0) {}

  const Cudnn* cudnn_;
  // Whether a plan outlives what it was made of is not said, so that is kept.
  std::vector<Descriptor> kept_;
  Descriptor plan_;
  uint64_t workspace_bytes_;
  bool has_bias_, has_residual_;
};

// Sizes and types, for messages and to distinguish forms.
std::string form_of(const Convolution& c);

}  // namespace tenon::cuda

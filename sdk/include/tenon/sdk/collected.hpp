// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results of a run or a batch, in memory of their own.

#include <utility>
#include <vector>

#include "tenon/exec.h"

#include "tenon/sdk/tensor.hpp"

namespace tenon {

class Collected {
 public:
  Collected(tn_ctx* ctx, size_t count) : ctx_(ctx), tensors_(count) {}
  Collected(const Collected&) = delete;
  const tn_outputs* outputs() const { return &raw_; }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  std::vector<Tensor> take() { return std::move(tensors_); }

 private:
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& all = *static_cast<Collected*>(self);
    return guard([&]() -> Status {
      if (i >= all.tensors_.size())
        return {TN_OUT_OF_RANGE, cat("result ", i, " of ", all.tensors_.size())};
      TN_TRY(made, Tensor::zeros(all.ctx_, dtype_of(*proto), shape_of(*proto)));
      all.tensors_[i] = made;
      *out = made.dl();
      return {};
    });
  }
  tn_ctx* ctx_;
  std::vector<Tensor> tensors_;
  tn_outputs raw_{this, get};
};

}  // namespace tenon

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for results that are asked for again and again: kept while type and shape stay the same.

#include <algorithm>
#include <vector>

#include "tenon/exec.h"

#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

class Buffers {
 public:
  Buffers(tn_ctx* ctx, size_t count) : ctx_(ctx), tensors_(count) {}
  Buffers(const Buffers&) = delete;
  const tn_outputs* outputs() const { return &raw_; }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }

 private:
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    return guard([&] { return static_cast<Buffers*>(self)->take(i, *proto, out); });
  }
  Status take(uint64_t i, const DLTensor& proto, DLTensor* out) {
    if (i >= tensors_.size()) return {TN_OUT_OF_RANGE, cat("result ", i, " of ", tensors_.size())};
    if (!fits(tensors_[i], proto)) {
      TN_TRY(made, Tensor::zeros(ctx_, dtype_of(proto), shape_of(proto)));
      tensors_[i] = made;
    }
    *out = tensors_[i].dl();
    return {};
  }
  static bool fits(const Tensor& tensor, const DLTensor& proto) {
    if (!tensor) return false;
    DLTensor have = tensor.dl();
    auto a = shape_of(have), b = shape_of(proto);
    return dtype_of(have) == dtype_of(proto) && std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  tn_ctx* ctx_;
  std::vector<Tensor> tensors_;
  tn_outputs raw_{this, get};
};

}  // namespace tenon::quantizer

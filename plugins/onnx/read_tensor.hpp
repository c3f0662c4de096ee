// SPDX-License-Identifier: Apache-2.0
#pragma once
// TensorProto to tensor: raw and external data as windows of mapped files, typed fields copied.

#include <map>
#include <memory>
#include <string>

#include "tenon/sdk/tensor.hpp"

#include "model.hpp"

namespace tenon::onnx_plugin {

// The model's file and the ones beside it that it names; both stay mapped while tensors need them.
class ModelFiles {
 public:
  ModelFiles(tn_ctx* ctx, tn_blob* model) : ctx_(ctx), model_(model) {}
  tn_ctx* ctx() const { return ctx_; }
  tn_blob* model() const { return model_; }
  Result<tn_blob*> beside(const std::string& relative);

 private:
  struct Release {
    void operator()(tn_blob* blob) const { services.blob->release(blob); }
  };
  tn_ctx* ctx_;
  tn_blob* model_;
  std::map<std::string, std::unique_ptr<tn_blob, Release>> beside_;
};

// The tensor of a skeleton's TensorProto. what: how to call it in messages.
Result<Tensor> read_tensor(ModelFiles& files, const onnx::TensorProto& from, std::string_view what);

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the plans of one model keep from run to run: one tensor for each state, by the name of its
// input. Executables write new values in the place of the old ones.

#include <map>
#include <mutex>
#include <string>

#include "tenon/sdk/tensor.hpp"

namespace tenon::onednn {

class StateStore {
 public:
  explicit StateStore(tn_ctx* ctx) : ctx_(ctx) {}

  // Where the state lies; zeros when it is new.
  Result<void*> place(const std::string& name, const DLTensor& like);
  Status set(const std::string& name, const DLTensor& value);
  // TN_NOT_FOUND when it was neither set nor run with.
  Status get(const std::string& name, DLTensor* out);

 private:
  tn_ctx* ctx_;
  std::mutex mutex_;  // of the map: one state is used by one call at a time
  std::map<std::string, Tensor> tensors_;
};

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the plans of one model keep from run to run: one tensor for each state, by the name of its
// input, in the layout that its last plan wanted. Executables write new values in the place of the
// old ones. Whoever sets or reads a state from outside sees it row-major.

#include <map>
#include <mutex>
#include <string>

#include "tenon/sdk/tensor.hpp"

#include "graph/graph.hpp"

namespace tenon::onednn {

class StateStore {
 public:
  explicit StateStore(tn_ctx* ctx) : ctx_(ctx) {}

  // Where the state lies, dense and with these strides; zeros when it is new. One that lies
  // otherwise is laid out again, so what an earlier call answered for this name may be gone.
  Result<void*> place(const std::string& name, const DLTensor& like, const Dims& strides);
  Status set(const std::string& name, const DLTensor& value);
  // TN_NOT_FOUND when it was neither set nor run with.
  Status get(const std::string& name, DLTensor* out);

 private:
  struct Kept {
    Tensor tensor;  // its header says row-major; `strides` are the truth
    Dims strides;
  };
  Status lay_out(Kept& kept, const Dims& strides);

  tn_ctx* ctx_;
  std::mutex mutex_;  // of the map: one state is used by one call at a time
  std::map<std::string, Kept> states_;
};

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "state_store.hpp"

#include <cstring>

namespace tenon::onednn {

Result<void*> StateStore::place(const std::string& name, const DLTensor& like) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    TN_TRY(made, Tensor::zeros(ctx_, dtype_of(like), shape_of(like)));
    found = tensors_.emplace(name, std::move(made)).first;
  }
  return static_cast<void*>(found->second.data<char>());
}

Status StateStore::set(const std::string& name, const DLTensor& value) {
  TN_TRY(made, Tensor::copy_of(ctx_, value));
  std::lock_guard<std::mutex> lock(mutex_);
  tensors_.insert_or_assign(name, std::move(made));
  return {};
}

Status StateStore::get(const std::string& name, DLTensor* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = tensors_.find(name);
  if (found == tensors_.end()) return {TN_NOT_FOUND, cat("no state ", name)};
  DLTensor kept = found->second.dl();
  std::memcpy(data_of<char>(*out), data_of<const char>(kept),
              bytes_of(dtype_of(kept), element_count(kept)));
  return {};
}

}  // namespace tenon::onednn

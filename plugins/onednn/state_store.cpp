// SPDX-License-Identifier: Apache-2.0
#include "state_store.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/copy.h"
#include "lowering/view.hpp"

namespace tenon::onednn {

namespace {

Dims dims_of(const DLTensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

bool has_shape(const DLTensor& tensor, const DLTensor& like) {
  return std::equal(tensor.shape, tensor.shape + tensor.ndim, like.shape, like.shape + like.ndim);
}

// As same_strides, for each run of each state: it allocates nothing.
bool lies_as(const DLTensor& tensor, const Dims& strides, const Dims& wanted) {
  for (size_t i = 0; i < strides.size(); ++i)
    if (tensor.shape[i] != 1 && strides[i] != wanted[i]) return false;
  return true;
}

// Dense memory to dense memory, in another order of axes perhaps.
void copy(const DLTensor& like,
          const void* from,
          const Dims& from_strides,
          void* to,
          const Dims& to_strides) {
  if (lies_as(like, from_strides, to_strides)) {
    std::memcpy(to, from, bytes_of(dtype_of(like), tenon::element_count(like)));
    return;
  }
  kernels::StridedCopy copy{.src = from, .dst = to};
  copy.element_bytes = static_cast<int64_t>(bytes_of(dtype_of(like), 1));
  copy.rank = like.ndim;
  std::copy_n(like.shape, like.ndim, copy.dims);
  std::copy_n(from_strides.begin(), like.ndim, copy.src_strides);
  std::copy_n(to_strides.begin(), like.ndim, copy.dst_strides);
  kernels::strided_copy(kernels::make_context(kernels::best_level(), {}), copy);
}

}  // namespace

Status StateStore::lay_out(Kept& kept, const Dims& strides) {
  DLTensor before = kept.tensor.dl();
  TN_TRY(made, Tensor::zeros(ctx_, dtype_of(before), shape_of(before)));
  copy(before, data_of<const void>(before), kept.strides, made.data<char>(), strides);
  kept = {std::move(made), strides};
  return {};
}

Result<void*> StateStore::place(const std::string& name,
                                const DLTensor& like,
                                const Dims& strides) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = states_.find(name);
  if (found == states_.end()) {
    TN_TRY(made, Tensor::zeros(ctx_, dtype_of(like), shape_of(like)));
    found = states_.emplace(name, Kept{std::move(made), strides}).first;
  }
  Kept& kept = found->second;
  if (!has_shape(kept.tensor.dl(), like))
    return invalid(cat("onednn: state ", name, ": its shape is not the compiled one"));
  if (!lies_as(like, kept.strides, strides)) TN_CHECK(lay_out(kept, strides));
  return static_cast<void*>(kept.tensor.data<char>());
}

Status StateStore::set(const std::string& name, const DLTensor& value) {
  TN_TRY(made, Tensor::copy_of(ctx_, value));
  std::lock_guard<std::mutex> lock(mutex_);
  states_.insert_or_assign(name, Kept{std::move(made), row_major_strides(dims_of(value))});
  return {};
}

Status StateStore::get(const std::string& name, DLTensor* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = states_.find(name);
  if (found == states_.end()) return {TN_NOT_FOUND, cat("no state ", name)};
  const Kept& kept = found->second;
  DLTensor inside = kept.tensor.dl();
  copy(inside, data_of<const void>(inside), kept.strides, data_of<char>(*out),
       row_major_strides(dims_of(inside)));
  return {};
}

}  // namespace tenon::onednn

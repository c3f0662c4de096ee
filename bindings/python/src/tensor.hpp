// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of the host, and how they become NumPy arrays and DLPack capsules and come from them.

#include <optional>
#include <span>
#include <vector>

#include "dtypes.hpp"
#include "session.hpp"

namespace tenon::python {

// Shares the host's memory; cheap to copy through a shared_ptr.
class Tensor {
 public:
  Tensor(const SessionPtr& session, tn_tensor* taken);
  tn_tensor* raw() const { return handle_.get(); }
  const DLTensor& view() const { return view_; }
  const SessionPtr& session() const { return handle_.session(); }
  uint32_t dtype() const { return dtype_of(view_.dtype); }
  std::span<const int64_t> shape() const { return {view_.shape, static_cast<size_t>(view_.ndim)}; }
  py::tuple shape_tuple() const;
  uint64_t count() const;
  char* data() const { return static_cast<char*>(view_.data) + view_.byte_offset; }

 private:
  Handle<tn_tensor> handle_;
  DLTensor view_{};
};
using TensorPtr = std::shared_ptr<Tensor>;

// Shares the memory, except for types of less than a byte. writable: false for a graph's constants.
py::array to_numpy(const TensorPtr& tensor, bool writable);
py::capsule to_dlpack(const TensorPtr& tensor, std::optional<std::pair<int, int>> max_version);
// A tensor over the memory of anything array-like: NumPy's arrays, DLPack's producers, numbers and
// lists. Copies only what is not dense or has another byte order. where: for messages. wanted: the
// type for numbers and lists, which have none of their own; TN_DTYPE_NONE: NumPy's choice.
// input_stream: given where memory of a device is taken as well; what reads it waits for that
// stream, in DLPack's numbers, or for none when it is 0.
TensorPtr tensor_from(const SessionPtr& session,
                      py::handle object,
                      const std::string& where,
                      uint32_t wanted = TN_DTYPE_NONE,
                      std::optional<int64_t> input_stream = {});

// NumPy's masked arrays are arrays to all who do not look.
void refuse_mask(py::handle array);

// Memory for results, asked for by the host from any of its threads, without the GIL.
class Results {
 public:
  Results(SessionPtr session, size_t count) : session_(std::move(session)), taken_(count) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  const tn_outputs* get() const { return &outputs_; }
  std::vector<TensorPtr> take() { return std::move(taken_); }

 private:
  static tn_status* TN_CALL provide(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out);
  SessionPtr session_;
  std::vector<TensorPtr> taken_;
  tn_outputs outputs_{this, provide};
};

}  // namespace tenon::python

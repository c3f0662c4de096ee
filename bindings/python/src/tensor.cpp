// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

namespace tenon::python {

Tensor::Tensor(const SessionPtr& session, tn_tensor* taken)
    : handle_(session, taken, session->tensor->release) {
  session->check(session->tensor->view(taken, &view_));
}

py::tuple Tensor::shape_tuple() const {
  py::tuple dims(static_cast<size_t>(view_.ndim));
  for (int32_t i = 0; i < view_.ndim; ++i)
    dims[static_cast<size_t>(i)] = view_.shape[i];
  return dims;
}

uint64_t Tensor::count() const {
  uint64_t n = 1;
  for (int64_t dim : shape())
    n *= static_cast<uint64_t>(dim);
  return n;
}

py::array to_numpy(const TensorPtr& tensor, bool writable) {
  uint32_t dtype = tensor->dtype();
  py::dtype type = numpy_dtype(dtype);
  std::vector<py::ssize_t> dims(tensor->shape().begin(), tensor->shape().end());
  if (is_packed(dtype)) {
    py::array array(type, dims);
    bool is_signed = TN_DTYPE_CODE(dtype) == kDLInt;
    unpack(reinterpret_cast<const uint8_t*>(tensor->data()),
           static_cast<uint8_t*>(array.mutable_data()), tensor->count(), TN_DTYPE_BITS(dtype),
           is_signed);
    return array;
  }
  std::vector<py::ssize_t> strides(dims.size());
  const DLTensor& view = tensor->view();
  py::ssize_t dense = type.itemsize();
  for (size_t i = dims.size(); i-- > 0; dense *= dims[i])
    strides[i] = view.strides ? view.strides[i] * type.itemsize() : dense;
  py::capsule owner(new TensorPtr(tensor), [](void* held) {
    std::unique_ptr<TensorPtr> ended(static_cast<TensorPtr*>(held));
  });
  py::array array(type, dims, strides, tensor->data(), owner);
  if (!writable) array.attr("setflags")(py::arg("write") = false);
  return array;
}

tn_status* TN_CALL Results::provide(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
  auto& self = *static_cast<Results*>(ctx);
  const Session& session = *self.session_;
  return cxx::callback(session, [&] {
    if (i >= self.taken_.size()) invalid(cat("result ", i, ": expected fewer"));
    tn_tensor* raw = nullptr;
    session.check(session.tensor->alloc_uninitialized(session.ctx(), proto, &raw));
    self.taken_[i] = std::make_shared<Tensor>(self.session_, raw);
    *out = self.taken_[i]->view();
  });
}

}  // namespace tenon::python

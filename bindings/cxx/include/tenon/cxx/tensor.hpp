// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor: a shared reference to a tensor of the host (64-byte aligned CPU memory, or a mapped file,
// or memory of NumPy's). It is cheap to copy. The view lives as long as the tensor.

#include <span>
#include <vector>

#include "tenon/cxx/dtype.hpp"
#include "tenon/cxx/session.hpp"

namespace tenon::cxx {

class Tensor {
 public:
  Tensor() = default;
  static Tensor take(const SessionPtr& session, tn_tensor* raw) {
    Tensor made;
    made.session_ = session;
    made.raw_ = raw;
    check(session->tensor->view(raw, &made.view_));
    return made;
  }
  static Tensor zeros(const SessionPtr& session, uint32_t dtype, std::vector<int64_t> shape) {
    DLTensor proto{};
    proto.device = {kDLCPU, 0};
    proto.ndim = static_cast<int32_t>(shape.size());
    proto.dtype = dl_dtype(dtype);
    proto.shape = shape.data();
    tn_tensor* raw = nullptr;
    check(session->tensor->alloc(session->ctx(), &proto, &raw));
    return take(session, raw);
  }
  static Tensor copy_of(const SessionPtr& session, const DLTensor& source) {
    tn_tensor* raw = nullptr;
    check(session->tensor->copy(session->ctx(), &source, &raw));
    return take(session, raw);
  }
  Tensor(const Tensor& other) : session_(other.session_), raw_(other.raw_), view_(other.view_) {
    if (raw_) session_->tensor->retain(raw_);
  }
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor other) noexcept {
    swap(other);
    return *this;
  }
  ~Tensor() {
    if (raw_) session_->tensor->release(raw_);
  }

  tn_tensor* raw() const { return raw_; }
  const SessionPtr& session() const { return session_; }
  const DLTensor* view() const { return &view_; }
  explicit operator bool() const { return raw_ != nullptr; }
  uint32_t dtype() const { return dtype_of(view_.dtype); }
  std::span<const int64_t> shape() const { return {view_.shape, static_cast<size_t>(view_.ndim)}; }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t dim : shape())
      n *= dim;
    return n;
  }
  uint64_t bytes() const { return session_->tensor->bytes(raw_); }
  void* data() const { return static_cast<char*>(view_.data) + view_.byte_offset; }
  double at(int64_t i) const { return number_at(data(), dtype(), i); }
  void set(int64_t i, double value) { store_number(data(), dtype(), i, value); }
  std::string text() const { return cat(dtype_name(dtype()), shape_text(shape())); }

  // Elements begin..end of the first axis, copied.
  Tensor rows(int64_t begin, int64_t end) const {
    if (view_.ndim == 0 || begin < 0 || end < begin || end > view_.shape[0]) {
      invalid(cat("rows ", begin, "..", end, ": expected a part of ", text()));
    }
    DLTensor part = view_;
    std::vector<int64_t> dims(shape().begin(), shape().end());
    uint64_t row_bytes = dims[0] ? bytes() / static_cast<uint64_t>(dims[0]) : 0;
    dims[0] = end - begin;
    part.shape = dims.data();
    part.byte_offset += row_bytes * static_cast<uint64_t>(begin);
    return copy_of(session_, part);
  }

 private:
  void swap(Tensor& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(raw_, other.raw_);
    std::swap(view_, other.view_);
  }
  SessionPtr session_;
  tn_tensor* raw_ = nullptr;
  DLTensor view_{};
};

// Takes results as their shapes become known; one slot for each output.
class Results {
 public:
  Results(SessionPtr session, size_t count) : session_(std::move(session)), taken_(count) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  const tn_outputs* get() const { return &outputs_; }
  std::vector<Tensor> take() { return std::move(taken_); }

 private:
  static tn_status* TN_CALL provide(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& self = *static_cast<Results*>(ctx);
    return callback(*self.session_, [&] {
      if (i >= self.taken_.size()) invalid(cat("result ", i, ": expected fewer"));
      tn_tensor* raw = nullptr;
      check(self.session_->tensor->alloc_uninitialized(self.session_->ctx(), proto, &raw));
      self.taken_[i] = Tensor::take(self.session_, raw);
      *out = *self.taken_[i].view();
    });
  }
  SessionPtr session_;
  std::vector<Tensor> taken_;
  tn_outputs outputs_{this, provide};
};

}  // namespace tenon::cxx

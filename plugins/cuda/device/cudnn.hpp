// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is used of cuDNN 9: its graph API, opened when first used. Descriptors and execution plans
// need no GPU: a device can be described in words, which is how plans are tested without one.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <cudnn_graph.h>

#include "tenon/sdk/status.hpp"

#include "has_cudnn.hpp"

namespace tenon::cuda {

struct Cudnn {
  // Opened once; fails where the library is missing, with what to install.
  static Result<const Cudnn*> get(const std::string& library = kCudnnLibrary);

  Status check(cudnnStatus_t status, std::string_view doing) const;

  decltype(&cudnnCreate) handle_new;
  decltype(&cudnnDestroy) handle_free;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) text;
  decltype(&cudnnGetLastErrorString) last_error;
  decltype(&cudnnBackendCreateDescriptor) create;
  decltype(&cudnnBackendDestroyDescriptor) destroy;
  decltype(&cudnnBackendSetAttribute) set;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

// One descriptor of the graph API. Attributes are set, then it is finished and does not change.
class Descriptor {
 public:
  static Result<Descriptor> make(const Cudnn& cudnn, cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : cudnn_(other.cudnn_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(cudnn_, other.cudnn_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Descriptor() {
    if (raw_) cudnn_->destroy(raw_);
  }

  cudnnBackendDescriptor_t raw() const { return raw_; }

  Status set(cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type,
             int64_t count,
             const void* values);
  template <class T>
  Status set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    return set(name, type, 1, &value);
  }
  Status set_numbers(cudnnBackendAttributeName_t name, const std::vector<int64_t>& numbers) {
    return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(numbers.size()), numbers.data());
  }
  Status set_child(cudnnBackendAttributeName_t name, const Descriptor& child) {
    return set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, child.raw());
  }
  Status finish();

  // How many values there are.
  Result<int64_t> count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  // Up to values.size() of them.
  template <class T>
  Status get(cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type,
             std::vector<T>* values) const {
    int64_t got = 0;
    TN_CHECK(read(name, type, static_cast<int64_t>(values->size()), &got, values->data()));
    values->resize(std::min(values->size(), static_cast<size_t>(std::max<int64_t>(got, 0))));
    return {};
  }

 private:
  Descriptor(const Cudnn* cudnn, cudnnBackendDescriptor_t raw) : cudnn_(cudnn), raw_(raw) {}
  Status read(cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type,
              int64_t wanted,
              int64_t* got,
              void* values) const;

  const Cudnn* cudnn_;
  cudnnBackendDescriptor_t raw_;
};

// A device that plans are made for: one of this process, or one in words (JSON, as cuDNN writes
// it).
Result<Descriptor> cudnn_device(const Cudnn& cudnn, int device);
Result<Descriptor> cudnn_device(const Cudnn& cudnn, const std::string& profile);

}  // namespace tenon::cuda

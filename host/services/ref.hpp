// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace tenon::host {

// Counted reference to a host object (tensor, graph); T has retain() and release().
template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref take(T* object) { return Ref(object); }
  static Ref share(T* object) {
    if (object) object->retain();
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  explicit Ref(T* object) : object_(object) {}
  T* object_ = nullptr;
};

}  // namespace tenon::host

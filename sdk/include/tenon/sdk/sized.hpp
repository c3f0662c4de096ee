// SPDX-License-Identifier: Apache-2.0
#pragma once
// A struct that the host filled in, in the size that this plugin was built with: the struct itself,
// or a copy with zeros behind what an older host knows.

#include <algorithm>
#include <cstring>

namespace tenon {

template <class T>
class Sized {
 public:
  explicit Sized(const T* from) : from_(from) {
    if (from->struct_size >= sizeof(T)) return;
    std::memcpy(static_cast<void*>(&full_), from, from->struct_size);
    full_.struct_size = sizeof(T);
    from_ = &full_;
  }
  Sized(const Sized&) = delete;
  Sized& operator=(const Sized&) = delete;
  const T* get() const { return from_; }
  const T* operator->() const { return from_; }
  const T& operator*() const { return *from_; }

 private:
  T full_{};
  const T* from_;
};

}  // namespace tenon

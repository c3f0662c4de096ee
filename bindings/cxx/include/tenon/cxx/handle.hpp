// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ownership of counted objects of the host. A handle keeps its session: a garbage collector frees
// objects in any order, and the session must go last.

#include <memory>
#include <utility>

#include "tenon/tenon.h"

namespace tenon::cxx {

struct Directly {
  template <class Call>
  void operator()(Call&& call) const {
    call();
  }
};

// Owns one counted object of the host. Around makes the call that lets go of it: Python's gives up
// its lock meanwhile.
template <class T, class Session, class Around = Directly>
class CountedHandle {
 public:
  using Release = void(TN_CALL*)(T*);
  CountedHandle() = default;
  CountedHandle(std::shared_ptr<Session> session, T* taken, Release release)
      : session_(std::move(session)), raw_(taken), release_(release) {}
  CountedHandle(CountedHandle&& other) noexcept { swap(other); }
  CountedHandle& operator=(CountedHandle&& other) noexcept {
    swap(other);
    return *this;
  }
  CountedHandle(const CountedHandle&) = delete;
  CountedHandle& operator=(const CountedHandle&) = delete;
  ~CountedHandle() {
    if (raw_) Around{}([this] { release_(raw_); });
  }
  T* get() const { return raw_; }
  const std::shared_ptr<Session>& session() const { return session_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  void swap(CountedHandle& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(raw_, other.raw_);
    std::swap(release_, other.release_);
  }
  std::shared_ptr<Session> session_;
  T* raw_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace tenon::cxx

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every opaque object begins with: a word that says its kind, so that a handle of another kind
// is an error and not a crash. The memory of the objects that ended last is kept for a while, so
// that a handle which is used after its release is found out too.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tenon::host {

// The address is what matters: one for each type.
template <class T>
inline constexpr char kHandleKind = 0;

template <class T>
class Handle {
 public:
  static constexpr size_t kRemembered = 256;

  Handle() : kind_(&kHandleKind<T>) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // Volatile: what a destructor writes into its own object would be optimized away.
  ~Handle() { *static_cast<const char* volatile*>(&kind_) = nullptr; }

  [[gnu::noinline]] static void* operator new(size_t bytes) { return ::operator new(bytes); }
  [[gnu::noinline]] static void operator delete(void* block) {
    static std::mutex lock;
    static std::array<void*, kRemembered> ended{};
    static size_t next = 0;
    std::lock_guard hold(lock);
    ::operator delete(std::exchange(ended[next], block));
    next = (next + 1) % kRemembered;
  }

 private:
  const char* kind_;
};

// Whether `handle` is a live T. It is read, so it must be one of the host's, of whatever kind.
template <class T>
bool is_live(const T* handle) {
  return *reinterpret_cast<const char* const*>(handle) == &kHandleKind<T>;
}

}  // namespace tenon::host

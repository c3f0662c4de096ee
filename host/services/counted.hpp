// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the objects have in common that the host hands out by reference: they are counted, by their
// references and against the context that made them.

#include <atomic>

#include "services/handle.hpp"
#include "services/session.hpp"

namespace tenon::host {

template <class T, Held kKind>
class Counted : public Handle<T> {
 public:
  explicit Counted(tn_ctx* made_by) : owner(made_by) { owner->add(kKind, 1); }
  ~Counted() { owner->add(kKind, -1); }
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<T*>(this);
  }
  // Whoever asks holds the reference.
  bool has_one_reference() const { return references_.load(std::memory_order_acquire) == 1; }
  tn_ctx* const owner;

 private:
  std::atomic<uint64_t> references_{1};
};

// Functions of their services.
template <class T>
void retain_object(T* object) {
  if (object) object->retain();
}
template <class T>
void release_object(T* object) {
  if (object) object->release();
}

}  // namespace tenon::host

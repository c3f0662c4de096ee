// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of which nobody may touch a byte behind its end.

#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace tenon::onednn::kernels {

// Zeroed bytes that end where a page begins that may not be read. They begin where their size says:
// whoever needs an alignment asks for a multiple of it.
class Guarded {
 public:
  template <class N>
  explicit Guarded(N bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_ = (static_cast<size_t>(bytes) + page - 1) / page * page + page;
    void* all = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<char*>(all);
    mprotect(all_ + size_ - page, page, PROT_NONE);
    data_ = all_ + size_ - page - static_cast<size_t>(bytes);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(all_, size_); }

  char* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  size_t size_ = 0;
  char* all_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
#include "guarded.hpp"

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace tenon::command::check {
namespace {

constexpr unsigned char kMark = 0xA5;

}  // namespace

size_t bytes_of(const DLTensor& tensor) {
  size_t n = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d)
    n *= static_cast<size_t>(tensor.shape[d]);
  return (n * tensor.dtype.bits * tensor.dtype.lanes + 7) / 8;
}

Guarded::Guarded(size_t n_bytes, size_t alignment) : n_bytes_(n_bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t rounded = (n_bytes + alignment - 1) / alignment * alignment;
  usable_ = (rounded + page - 1) / page * page;
  all_ = usable_ + page;
  void* made = mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) broken("no memory for guarded buffers");
  base_ = static_cast<unsigned char*>(made);
  mprotect(base_ + usable_, page, PROT_NONE);
  data_ = base_ + usable_ - rounded;
  std::memset(base_, kMark, usable_);
}

Guarded::~Guarded() {
  munmap(base_, all_);
}

void Guarded::protect() const {
  mprotect(base_, usable_, PROT_READ);
}

int64_t Guarded::damage() const {
  for (unsigned char* at = base_; at < base_ + usable_; ++at)
    if ((at < data_ || at >= data_ + n_bytes_) && *at != kMark)
      return at < data_ ? at - data_ : at - data_ - static_cast<int64_t>(n_bytes_) + 1;
  return 0;
}

void Guarded::require_whole(const std::string& what) const {
  int64_t at = damage();
  require(at == 0,
          cat("it wrote ", at < 0 ? -at : at, " bytes ", at < 0 ? "before " : "behind ", what));
}

GuardedTensor::GuardedTensor(const DLTensor& from)
    : block_(bytes_of(from)), shape_(from.shape, from.shape + from.ndim), view_(from) {
  std::memcpy(block_.data(), static_cast<const char*>(from.data) + from.byte_offset,
              bytes_of(from));
  block_.protect();
  view_.data = block_.data();
  view_.byte_offset = 0;
  view_.shape = shape_.data();
  view_.strides = nullptr;
}

GuardedResults::GuardedResults()
    : raw_{this, [](void* self, uint64_t, const DLTensor* proto, DLTensor* out) -> tn_status* {
             auto* all = static_cast<GuardedResults*>(self);
             all->shapes_.emplace_back(proto->shape, proto->shape + proto->ndim);
             all->blocks_.push_back(std::make_unique<Guarded>(bytes_of(*proto)));
             *out = *proto;
             out->device = {kDLCPU, 0};
             out->shape = all->shapes_.back().data();
             out->strides = nullptr;
             out->byte_offset = 0;
             out->data = all->blocks_.back()->data();
             return nullptr;
           }} {}

void GuardedResults::require_whole(const std::string& where) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    int64_t at = blocks_[i]->damage();
    require(at == 0, cat(where, "it wrote ", at < 0 ? -at : at, " bytes ",
                         at < 0 ? "before" : "behind", " result ", i));
  }
}

}  // namespace tenon::command::check

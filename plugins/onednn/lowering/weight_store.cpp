// SPDX-License-Identifier: Apache-2.0
#include "weight_store.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace tenon::onednn {
namespace {

constexpr size_t kAlign = 64, kHugePage = size_t{2} << 20;

// FNV-1a over up to 4 KiB of samples: enough to tell two models apart, cheap for large weights.
uint64_t sample_hash(const void* data, size_t bytes) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  size_t step = std::max<size_t>(1, bytes / 4096);
  uint64_t hash = 14695981039346656037ULL;
  for (size_t i = 0; i < bytes; i += step)
    hash = (hash ^ p[i]) * 1099511628211ULL;
  return hash;
}

}  // namespace

void AlignedDelete::operator()(void* p) const {
  std::free(p);
}

BlockForm block_form(int64_t bytes) {
  size_t size = (static_cast<size_t>(bytes) / kAlign + 1) * kAlign;
  if (size < kHugePage) return {size, size, kAlign};
  return {size, (size + kHugePage - 1) / kHugePage * kHugePage, kHugePage};
}

// Layers of few rows read each weight once and wait for memory: with pages of 2 MiB they no longer
// wait for address translation too. Only whole pages, so nothing grows; a refusal changes nothing.
void prepare_block(void* memory, const BlockForm& form) {
  if (form.align == kHugePage) madvise(memory, form.used / kHugePage * kHugePage, MADV_HUGEPAGE);
  std::memset(memory, 0, form.used);
}

std::shared_ptr<void> aligned_bytes(int64_t bytes) {
  BlockForm form = block_form(bytes);
  void* p = std::aligned_alloc(form.align, form.bytes);
  if (p == nullptr) throw std::bad_alloc();
  prepare_block(p, form);
  return {p, AlignedDelete()};
}

std::shared_ptr<const void> WeightStore::find(const Key& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.packed.expired(); });
  for (const Entry& entry : entries_) {
    if (!(entry.key == key)) continue;
    if (std::shared_ptr<const void> found = entry.packed.lock()) return found;
  }
  return nullptr;
}

std::shared_ptr<const void> WeightStore::keep(Key key, std::shared_ptr<const void> packed) {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.push_back({std::move(key), packed});
  return packed;
}

std::shared_ptr<const void> WeightStore::packed(const void* data,
                                                const dnnl::memory::desc& from,
                                                const dnnl::memory::desc& to) {
  const Key key{data, sample_hash(data, from.get_size()), from, to};
  if (std::shared_ptr<const void> found = find(key)) return found;
  std::shared_ptr<void> target = allocate_(static_cast<int64_t>(to.get_size()));
  dnnl::stream stream(engine_);
  dnnl::memory source(from, engine_, const_cast<void*>(data));
  dnnl::memory result(to, engine_, target.get());
  dnnl::reorder(source, result).execute(stream, source, result);
  stream.wait();
  return keep(key, target);
}

std::shared_ptr<const void> WeightStore::made(const void* data,
                                              int64_t source_bytes,
                                              const std::string& form,
                                              int64_t bytes,
                                              const std::function<void(void*)>& fill) {
  Key key{data, sample_hash(data, static_cast<size_t>(source_bytes))};
  key.form = form;
  if (std::shared_ptr<const void> found = find(key)) return found;
  std::shared_ptr<void> target = allocate_(bytes);
  fill(target.get());
  return keep(std::move(key), target);
}

}  // namespace tenon::onednn

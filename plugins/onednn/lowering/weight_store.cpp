// SPDX-License-Identifier: Apache-2.0
#include "weight_store.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace tenon::onednn {
namespace {

constexpr size_t kAlign = 64, kHugePage = size_t{2} << 20;

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

std::shared_ptr<const void> WeightStore::packed(const void* data,
                                                const dnnl::memory::desc& from,
                                                const dnnl::memory::desc& to,
                                                uint64_t identity) {
  return cache_.get({data, from.get_size(), identity}, {from, to},
                    [&]() -> std::shared_ptr<const void> {
                      std::shared_ptr<void> target = allocate_(static_cast<int64_t>(to.get_size()));
                      dnnl::stream stream(engine_);
                      dnnl::memory source(from, engine_, const_cast<void*>(data));
                      dnnl::memory result(to, engine_, target.get());
                      dnnl::reorder(source, result).execute(stream, source, result);
                      stream.wait();
                      return target;
                    });
}

std::shared_ptr<const void> WeightStore::made(const void* data,
                                              int64_t source_bytes,
                                              const std::string& form,
                                              int64_t bytes,
                                              const std::function<void(void*)>& fill,
                                              uint64_t identity) {
  auto make = [&]() -> std::shared_ptr<const void> {
    std::shared_ptr<void> target = allocate_(bytes);
    fill(target.get());
    return target;
  };
  return cache_.get({data, static_cast<size_t>(source_bytes), identity}, {{}, {}, form}, make);
}

}  // namespace tenon::onednn

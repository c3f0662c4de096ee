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

// Whether the descriptor says all: oneDNN adds sums to 8-bit weights, and has forms that it
// describes to nobody.
bool holds_plain_numbers(const dnnl::memory::desc& desc) {
  using Type = dnnl::memory::data_type;
  const Type type = desc.get_data_type();
  return desc.get_format_kind() == dnnl::memory::format_kind::blocked &&
         (type == Type::f32 || type == Type::bf16 || type == Type::f16);
}

std::string text_of(const dnnl::memory::desc& desc) {
  std::string text = cat("[", static_cast<int>(desc.get_data_type()));
  for (const dnnl::memory::dims& numbers :
       {desc.get_dims(), desc.get_padded_dims(), desc.get_padded_offsets(), desc.get_strides(),
        desc.get_inner_blks(), desc.get_inner_idxs(),
        dnnl::memory::dims{desc.get_submemory_offset()}}) {
    text += ";";
    for (int64_t number : numbers)
      text += cat(" ", number);
  }
  return text + "]";
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

std::shared_ptr<const void> WeightStore::filled(const Source& source,
                                                int64_t bytes,
                                                const std::function<std::string()>& form,
                                                const std::function<void(void*)>& fill) {
  const bool has_file = files_ != nullptr && form && bytes >= PackedFiles::kLeastBytes;
  PackedKey key = {};
  if (has_file) {
    key = files_->key(source.data, source.bytes, form());
    if (auto found = files_->find(key, bytes)) {
      n_found_.fetch_add(1, std::memory_order_relaxed);
      return found;
    }
  }
  std::shared_ptr<void> made = allocate_(bytes);
  fill(made.get());
  if (!has_file) return made;
  auto kept = files_->keep(key, made.get(), bytes);
  return kept != nullptr ? kept : made;
}

std::shared_ptr<const void> WeightStore::packed(const void* data,
                                                const dnnl::memory::desc& from,
                                                const dnnl::memory::desc& to,
                                                uint64_t identity) {
  auto fill = [&](void* target) {
    dnnl::stream stream(engine_);
    dnnl::memory source(from, engine_, const_cast<void*>(data));
    dnnl::memory result(to, engine_, target);
    dnnl::reorder(source, result).execute(stream, source, result);
    stream.wait();
  };
  auto form = [&] { return cat("reorder ", text_of(from), text_of(to)); };
  const bool has_text = holds_plain_numbers(from) && holds_plain_numbers(to);
  return cache_.get({data, from.get_size(), identity}, {from, to}, [&] {
    return filled({data, from.get_size()}, static_cast<int64_t>(to.get_size()),
                  has_text ? form : std::function<std::string()>(), fill);
  });
}

std::shared_ptr<const void> WeightStore::made(const void* data,
                                              int64_t source_bytes,
                                              const std::string& form,
                                              int64_t bytes,
                                              const std::function<void(void*)>& fill,
                                              uint64_t identity) {
  const Source source{data, static_cast<size_t>(source_bytes)};
  return cache_.get({data, source.bytes, identity}, {{}, {}, form},
                    [&] { return filled(source, bytes, [&] { return form; }, fill); });
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors: memory with a shape and a type, counted references, tagged with the context that made
// them. The memory is the host's own, a managed DLPack tensor that was taken over, or a window of a
// mapped file. A tensor's layout never changes after it was made, so any thread may read it.

#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "tenon/host/tensor.h"

#include "services/counted.hpp"
#include "services/ref.hpp"
#include "services/status.hpp"
#include "values/dtype.hpp"

struct tn_tensor : tenon::host::Counted<tn_tensor, tenon::host::Held::kTensor> {
  using Counted::Counted;
  ~tn_tensor() {
    if (drop) drop(this);
  }
  uint32_t dtype() const { return tenon::host::dtype_of(dl.dtype); }
  std::span<const int64_t> shape() const { return {dl.shape, static_cast<size_t>(dl.ndim)}; }
  // The first element.
  const char* data() const { return static_cast<const char*>(dl.data) + dl.byte_offset; }
  static uint64_t next_identity() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  const uint64_t identity = next_identity();
  DLTensor dl{};       // shape and strides point into `layout`
  uint64_t bytes = 0;  // of the elements, dense
  bool dense = true;
  bool read_only = false;
  std::vector<int64_t> layout;  // sizes, then strides
  void* backing = nullptr;      // what drop() gives back
  void (*drop)(tn_tensor*) noexcept = nullptr;
  // Of a constant that one compile made for itself: its memory goes when its backend has read it,
  // before its references do. Written while nobody else knows the tensor.
  bool is_spare = false;
  bool is_discarded() const { return bytes > 0 && !drop; }
  void discard() {
    if (auto end = std::exchange(drop, nullptr)) end(this);
    dl.data = backing = nullptr;
  }
};

namespace tenon::host {

// Zeroed, dense, 64-byte aligned.
Result<Ref<tn_tensor>> alloc_tensor(tn_ctx* owner, uint32_t dtype, std::span<const int64_t> dims);
// The same with whatever the memory held.
Result<Ref<tn_tensor>> reserve_tensor(tn_ctx* owner, uint32_t dtype, std::span<const int64_t> dims);
// A dense copy; NULL strides mean dense.
Result<Ref<tn_tensor>> copy_tensor(tn_ctx* owner, const DLTensor& src);
// Takes over the managed tensor on success only.
Result<Ref<tn_tensor>> import_tensor(tn_ctx* owner, DLManagedTensorVersioned* managed);
Result<Ref<tn_tensor>> map_tensor(
    tn_ctx* owner, tn_blob* blob, uint64_t offset, uint32_t dtype, std::span<const int64_t> dims);
// The tensor itself where it lies dense, else a dense copy.
Result<Ref<tn_tensor>> dense_tensor(tn_tensor* tensor);
Result<DLManagedTensorVersioned*> export_tensor(tn_tensor* tensor);

// Copies elements of any strides into dense memory of the right size.
Status copy_dense(const DLTensor& src, void* dst);
// Type, rank, sizes, strides, data and offset; bytes of the dense form.
Result<uint64_t> check_tensor(const DLTensor& tensor);

const tn_host_tensor* tensor_service();

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "values/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "memory/free_memory.hpp"
#include "memory/large_pages.hpp"
#include "services/boundary.hpp"
#include "services/rooms.hpp"
#include "services/session.hpp"
#include "values/tensor_layout.hpp"

using namespace tenon::host;

namespace tenon::host {
namespace {

constexpr std::align_val_t kAlignment{64};

void set_layout(tn_tensor& tensor, uint32_t dtype, std::span<const int64_t> dims) {
  tensor.dl.dtype = dl_type(dtype);
  tensor.dl.device = {kDLCPU, 0};
  tensor.dl.ndim = static_cast<int32_t>(dims.size());
  tensor.layout.assign(dims.begin(), dims.end());
  std::vector<int64_t> strides = dense_strides(dims);
  tensor.layout.insert(tensor.layout.end(), strides.begin(), strides.end());
  tensor.dl.shape = tensor.layout.data();
  tensor.dl.strides = tensor.layout.data() + dims.size();
}

void drop_memory(tn_tensor* tensor) noexcept {
  ::operator delete(tensor->backing, kAlignment);
  tensor->owner->add(Held::kBytes, -static_cast<int64_t>(tensor->bytes));
}

void drop_managed(tn_tensor* tensor) noexcept {
  auto* managed = static_cast<DLManagedTensorVersioned*>(tensor->backing);
  if (managed->deleter) managed->deleter(managed);
}

void drop_window(tn_tensor* tensor) noexcept {
  rooms().files()->release(static_cast<tn_blob*>(tensor->backing));
}

}  // namespace

Result<Ref<tn_tensor>> reserve_tensor(tn_ctx* owner,
                                      uint32_t dtype,
                                      std::span<const int64_t> dims) {
  TN_TRY(bytes, dense_bytes(dtype, dims));
  auto tensor = Ref<tn_tensor>::take(new tn_tensor(owner));
  set_layout(*tensor.get(), dtype, dims);
  // At least one byte, so that empty tensors have an address too.
  void* memory =
      fits_memory(bytes) ? ::operator new(bytes ? bytes : 1, kAlignment, std::nothrow) : nullptr;
  if (!memory)
    return Status(TN_RESOURCE_EXHAUSTED,
                  cat("tensor ", dtype_name(dtype), shape_text(dims), ": ", no_memory_text(bytes)));
  prefer_large_pages(memory, bytes);
  tensor->bytes = bytes;
  tensor->dl.data = tensor->backing = memory;
  tensor->drop = drop_memory;
  owner->add(Held::kBytes, static_cast<int64_t>(bytes));
  return tensor;
}

Result<Ref<tn_tensor>> alloc_tensor(tn_ctx* owner, uint32_t dtype, std::span<const int64_t> dims) {
  TN_TRY(tensor, reserve_tensor(owner, dtype, dims));
  std::memset(tensor->backing, 0, tensor->bytes);
  return std::move(tensor);
}

Result<Ref<tn_tensor>> copy_tensor(tn_ctx* owner, const DLTensor& src) {
  TN_TRY(bytes, check_tensor(src));
  (void)bytes;
  TN_TRY(tensor, reserve_tensor(owner, dtype_of(src.dtype), dims_of(src)));
  TN_CHECK(copy_dense(src, tensor->backing));
  return std::move(tensor);
}

Result<Ref<tn_tensor>> dense_tensor(tn_tensor* tensor) {
  if (tensor->dense) return Ref<tn_tensor>::share(tensor);
  return copy_tensor(tensor->owner, tensor->dl);
}

Result<Ref<tn_tensor>> import_tensor(tn_ctx* owner, DLManagedTensorVersioned* managed) {
  if (!managed) return invalid("from_dlpack: expected a managed tensor, got NULL");
  DLPackVersion version = managed->version;
  if (version.major != DLPACK_MAJOR_VERSION)
    return invalid(cat("from_dlpack: expected DLPack version 1, got ", version.major, ".",
                       version.minor, " (export the tensor with max_version=(1, 3))"));
  if (managed->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)
    return Status(TN_UNIMPLEMENTED,
                  "from_dlpack: expected packed elements under 8 bits, got padded");
  const DLTensor& given = managed->dl_tensor;
  // DLPack 1.2 made strides mandatory; before, NULL stood for dense.
  if (given.ndim > 0 && !given.strides && version.minor >= 2)
    return invalid(cat("from_dlpack: expected strides, as DLPack ", version.major, ".",
                       version.minor, " demands, got NULL"));
  TN_TRY(bytes, check_tensor(given));
  auto tensor = Ref<tn_tensor>::take(new tn_tensor(owner));
  std::span<const int64_t> dims = dims_of(given);
  set_layout(*tensor.get(), dtype_of(given.dtype), dims);
  tensor->dense = is_dense(given);
  if (given.strides && !tensor->dense) std::copy_n(given.strides, dims.size(), tensor->dl.strides);
  tensor->dl.data = given.data;
  tensor->dl.byte_offset = given.byte_offset;
  tensor->dl.device = given.device;
  tensor->bytes = bytes;
  tensor->read_only = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  tensor->backing = managed;
  tensor->drop = drop_managed;
  return tensor;
}

Result<Ref<tn_tensor>> map_tensor(
    tn_ctx* owner, tn_blob* blob, uint64_t offset, uint32_t dtype, std::span<const int64_t> dims) {
  TN_TRY(bytes, dense_bytes(dtype, dims));
  const void* data = nullptr;
  TN_CHECK(Status(rooms().files()->map(blob, offset, bytes, &data)));
  auto tensor = Ref<tn_tensor>::take(new tn_tensor(owner));
  set_layout(*tensor.get(), dtype, dims);
  tensor->bytes = bytes;
  tensor->read_only = true;
  tensor->dl.data = const_cast<void*>(data);  // DLPack has no const; the read-only flag says it
  rooms().files()->retain(blob);
  tensor->backing = blob;
  tensor->drop = drop_window;
  return tensor;
}

Result<DLManagedTensorVersioned*> export_tensor(tn_tensor* tensor) {
  auto out = std::make_unique<DLManagedTensorVersioned>();
  out->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  out->flags = tensor->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  out->dl_tensor = tensor->dl;
  out->manager_ctx = tensor;
  out->deleter = [](DLManagedTensorVersioned* self) {
    static_cast<tn_tensor*>(self->manager_ctx)->release();
    delete self;
  };
  tensor->retain();
  return out.release();
}

namespace {

tn_status* view(const tn_tensor* tensor, DLTensor* out) {
  *out = tensor->dl;
  return nullptr;
}

template <auto kMake>
tn_status* made(tn_ctx* ctx, const DLTensor* proto, tn_tensor** out) {
  return guarded_out(out, [&]() -> Result<Ref<tn_tensor>> {
    TN_CHECK(check_rank(*proto));
    return kMake(ctx, dtype_of(proto->dtype), dims_of(*proto));
  });
}

tn_status* copy(tn_ctx* ctx, const DLTensor* src, tn_tensor** out) {
  return guarded_out(out, [&] { return copy_tensor(ctx, *src); });
}

tn_status* from_dlpack(tn_ctx* ctx, DLManagedTensorVersioned* managed, tn_tensor** out) {
  return guarded_out(out, [&] { return import_tensor(ctx, managed); });
}

tn_status* to_dlpack(tn_tensor* tensor, DLManagedTensorVersioned** out) {
  return guarded_out(out, [&] { return export_tensor(tensor); });
}

tn_status* from_blob(
    tn_ctx* ctx, tn_blob* blob, uint64_t offset, const DLTensor* proto, tn_tensor** out) {
  return guarded_out(out, [&]() -> Result<Ref<tn_tensor>> {
    TN_CHECK(check_rank(*proto));
    return map_tensor(ctx, blob, offset, dtype_of(proto->dtype), dims_of(*proto));
  });
}

uint64_t bytes(const tn_tensor* tensor) {
  return tensor->bytes;
}

void unneeded(tn_tensor* tensor) {
  if (tensor->is_spare) return tensor->discard();
  if (tensor->drop != drop_window) return;
  auto* blob = static_cast<tn_blob*>(tensor->backing);
  const void* begin = nullptr;
  Status mapped(rooms().files()->map(blob, 0, 0, &begin));
  if (mapped.ok())
    rooms().files()->unneeded(
        blob, static_cast<uint64_t>(tensor->data() - static_cast<const char*>(begin)),
        tensor->bytes);
}

uint64_t identity(const tn_tensor* tensor) {
  return tensor->identity;
}
}  // namespace

const tn_host_tensor* tensor_service() {
  static const tn_host_tensor table{sizeof table,   1,
                                    view,           made<alloc_tensor>,
                                    copy,           from_dlpack,
                                    to_dlpack,      from_blob,
                                    bytes,          retain_object,
                                    release_object, unneeded,
                                    identity,       made<reserve_tensor>};
  return &table;
}

}  // namespace tenon::host

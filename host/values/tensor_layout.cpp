// SPDX-License-Identifier: Apache-2.0
#include "values/tensor_layout.hpp"

#include <algorithm>
#include <cstring>

#include "values/dtype.hpp"
#include "values/tensor.hpp"

namespace tenon::host {
namespace {

// The bytes from the lowest to the highest element must be addressable.
Status check_strides(const DLTensor& tensor) {
  int64_t lowest = 0;
  int64_t highest = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    int64_t reach = 0;
    int64_t& side = tensor.strides[i] < 0 ? lowest : highest;
    if (__builtin_mul_overflow(tensor.strides[i], tensor.shape[i] - 1, &reach) ||
        __builtin_add_overflow(side, reach, &side))
      return Status(
          TN_OUT_OF_RANGE,
          cat("tensor of shape ", shape_text(dims_of(tensor)), ": the strides ",
              shape_text({tensor.strides, size_t(tensor.ndim)}), " reach further than 63 bits"));
  }
  uint64_t spread = static_cast<uint64_t>(highest) - static_cast<uint64_t>(lowest);
  TN_CHECK(bytes_of(dtype_of(tensor.dtype), spread == UINT64_MAX ? spread : spread + 1).status());
  if (TN_DTYPE_BITS(dtype_of(tensor.dtype)) < 8 && !is_dense(tensor))
    return Status(TN_UNIMPLEMENTED, cat("tensor of ", dtype_name(dtype_of(tensor.dtype)),
                                        ": elements under 8 bits must be dense, got strides ",
                                        shape_text({tensor.strides, size_t(tensor.ndim)})));
  return {};
}

// Copies one axis after the other; `axis` counts from the outermost.
char* copy_axis(const DLTensor& src, const char* from, char* to, int32_t axis, size_t item) {
  if (axis == src.ndim) {
    std::memcpy(to, from, item);
    return to + item;
  }
  int64_t step = src.strides[axis] * static_cast<int64_t>(item);
  if (axis == src.ndim - 1 && src.strides[axis] == 1) {
    size_t bytes = static_cast<size_t>(src.shape[axis]) * item;
    std::memcpy(to, from, bytes);
    return to + bytes;
  }
  for (int64_t i = 0; i < src.shape[axis]; ++i)
    to = copy_axis(src, from + i * step, to, axis + 1, item);
  return to;
}

}  // namespace

std::vector<int64_t> dense_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

Status check_rank(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank)
    return invalid(cat("tensor: expected a rank in [0, ", kMaxRank, "], got ", tensor.ndim));
  if (tensor.ndim > 0 && !tensor.shape)
    return invalid(cat("tensor: expected ", tensor.ndim, " sizes, got NULL"));
  return {};
}

Result<uint64_t> dense_bytes(uint32_t dtype, std::span<const int64_t> dims) {
  if (!dtype_known(dtype))
    return invalid(
        cat("tensor: expected an element type such as f32 or i8, got ", dtype_name(dtype)));
  TN_TRY(elements, element_count(dims));
  return bytes_of(dtype, elements);
}

Result<uint64_t> check_tensor(const DLTensor& tensor) {
  TN_CHECK(check_rank(tensor));
  TN_TRY(bytes, dense_bytes(dtype_of(tensor.dtype), dims_of(tensor)));
  if (bytes == 0) return uint64_t{0};
  if (!tensor.data)
    return invalid(cat("tensor of shape ", shape_text(dims_of(tensor)), ": data is NULL"));
  if (tensor.byte_offset > UINTPTR_MAX - reinterpret_cast<uintptr_t>(tensor.data))
    return Status(TN_OUT_OF_RANGE,
                  cat("tensor: byte_offset ", tensor.byte_offset, " leaves the address space"));
  if (tensor.strides) TN_CHECK(check_strides(tensor));
  return bytes;
}

Status copy_dense(const DLTensor& src, void* dst) {
  TN_TRY(bytes, check_tensor(src));
  if (!is_on_cpu(src.device))
    return Status(TN_UNIMPLEMENTED, cat("tensor: expected CPU memory (device 1), got device ",
                                        src.device.device_type));
  const char* from = static_cast<const char*>(src.data) + src.byte_offset;
  if (bytes == 0) return {};
  if (is_dense(src)) {
    std::memcpy(dst, from, bytes);
  } else {
    copy_axis(src, from, static_cast<char*>(dst), 0, src.dtype.bits / 8u);
  }
  return {};
}

}  // namespace tenon::host

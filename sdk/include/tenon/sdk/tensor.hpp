// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors and types in C++. Tensor owns a reference to a host tensor; Type is a value type with
// its dimensions copied; the free functions read a DLTensor.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/dense.hpp"
#include "tenon/sdk/status.hpp"

namespace tenon {

inline constexpr DLDevice kCpu{kDLCPU, 0};

inline uint32_t dtype_of(DLDataType type) {
  return uint32_t{type.code} | uint32_t{type.bits} << 8 | uint32_t{type.lanes} << 16;
}
inline DLDataType dl_dtype(uint32_t dtype) {
  return {static_cast<uint8_t>(dtype & 0xff), static_cast<uint8_t>(dtype >> 8 & 0xff),
          static_cast<uint16_t>(dtype >> 16)};
}
inline uint64_t bytes_of(uint32_t dtype, int64_t elements) {
  return (static_cast<uint64_t>(elements) * TN_DTYPE_BITS(dtype) + 7) / 8;
}
inline bool is_float(uint32_t dtype) {
  return TN_DTYPE_CODE(dtype) == kDLFloat || TN_DTYPE_CODE(dtype) == kDLBfloat;
}
std::string dtype_name(uint32_t dtype);  // NumPy's: "float32", "bfloat16", "uint8"

inline int64_t element_count(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(n, dim, &n)) n = INT64_MAX;  // a file may state any shape
  return n;
}
inline std::span<const int64_t> shape_of(const DLTensor& t) {
  return {t.shape, static_cast<size_t>(t.ndim)};
}
inline int64_t element_count(const DLTensor& t) {
  return element_count(shape_of(t));
}
inline uint32_t dtype_of(const DLTensor& t) {
  return dtype_of(t.dtype);
}
template <class T>
T* data_of(const DLTensor& t) {
  return reinterpret_cast<T*>(static_cast<char*>(t.data) + t.byte_offset);
}

// Within 0..rank-1; `axis` may count from the end.
inline int64_t positive_axis(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

// Everything before, at and after an axis, as counts. Element (o, k, i) of a dense tensor lies at
// (o * size + k) * inner + i.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
  AxisSplit(std::span<const int64_t> shape, int64_t axis) {
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      int64_t& part = d < axis ? outer : d == axis ? size : inner;
      part *= shape[static_cast<size_t>(d)];
    }
  }
  // The entry along the axis that an element belongs to.
  size_t along(size_t element) const {
    return element / static_cast<size_t>(inner) % static_cast<size_t>(size);
  }
};

// A DLTensor header over dense row-major memory, with room for its shape. It points into itself:
// it can be moved or copied only through these operations.
class DenseView {
 public:
  DenseView(uint32_t dtype, std::span<const int64_t> shape, const void* data = nullptr) {
    dims_.assign(shape.begin(), shape.end());
    dims_.resize(shape.size() * 2);
    int64_t stride = 1;  // wraps around in a shape that no memory is behind
    for (size_t i = shape.size(); i-- > 0;) {
      dims_[shape.size() + i] = stride;
      __builtin_mul_overflow(stride, std::max<int64_t>(shape[i], 1), &stride);
    }
    header_ = {const_cast<void*>(data),
               kCpu,
               static_cast<int32_t>(shape.size()),
               dl_dtype(dtype),
               nullptr,
               nullptr,
               0};
    point();
  }
  DenseView(const DenseView& other) : header_(other.header_), dims_(other.dims_) { point(); }
  DenseView& operator=(const DenseView& other) {
    header_ = other.header_;
    dims_ = other.dims_;
    point();
    return *this;
  }
  const DLTensor& operator*() const { return header_; }
  DLTensor* get() { return &header_; }
  const DLTensor* get() const { return &header_; }

 private:
  void point() {
    header_.shape = dims_.data();
    header_.strides = dims_.data() + header_.ndim;
  }
  DLTensor header_{};
  std::vector<int64_t> dims_;
};

struct Type {
  uint32_t dtype = TN_DTYPE_NONE;
  bool ranked = false;
  std::vector<int64_t> dims;         // TN_DIM_UNKNOWN where not a number
  std::vector<std::string> symbols;  // empty vector, or one per dimension
  uint32_t kind = TN_KIND_TENSOR;

  Type() = default;
  Type(uint32_t type, std::vector<int64_t> shape)
      : dtype(type), ranked(true), dims(std::move(shape)) {}
  explicit Type(const tn_type& raw);
  size_t rank() const { return dims.size(); }
  bool is_static() const;  // rank and every dimension known
  int64_t elements() const { return element_count(dims); }
};

// The C view of a Type; lives as long as both.
class TypeView {
 public:
  explicit TypeView(const Type& type);
  TypeView(const TypeView&) = delete;
  TypeView& operator=(const TypeView&) = delete;
  const tn_type* get() const { return &raw_; }

 private:
  tn_type raw_{};
  std::vector<tn_str> symbols_;
};

class Tensor {
 public:
  Tensor() = default;
  static Tensor take(tn_tensor* raw) { return Tensor(raw); }
  static Tensor share(tn_tensor* raw) {
    if (raw) services.tensor->retain(raw);
    return Tensor(raw);
  }
  // Zeroed CPU memory.
  static Result<Tensor> zeros(tn_ctx* ctx, uint32_t dtype, std::span<const int64_t> shape);
  static Result<Tensor> copy_of(tn_ctx* ctx, const DLTensor& source);
  // On the CPU and row-major: this tensor where it is that already, else a copy.
  Result<Tensor> dense(tn_ctx* ctx) const;
  // A copy of plain numbers.
  template <class T>
  static Result<Tensor> of(tn_ctx* ctx,
                           uint32_t dtype,
                           std::span<const int64_t> shape,
                           std::span<const T> values) {
    return copy_of(ctx, *DenseView(dtype, shape, values.data()));
  }
  Tensor(const Tensor& other) : Tensor(share(other.raw_)) {}
  Tensor(Tensor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Tensor() {
    if (raw_) services.tensor->release(raw_);
  }
  explicit operator bool() const { return raw_ != nullptr; }
  tn_tensor* get() const { return raw_; }
  uint64_t identity() const { return services.tensor->identity(raw_); }
  DLTensor dl() const {
    DLTensor out{};
    Status ignored(services.tensor->view(raw_, &out));  // cannot fail on a live tensor
    return out;
  }
  template <class T>
  T* data() const {
    return data_of<T>(dl());
  }

 private:
  explicit Tensor(tn_tensor* raw) : raw_(raw) {}
  tn_tensor* raw_ = nullptr;
};

// ---- definitions

inline std::string dtype_name(uint32_t dtype) {
  std::string bits = std::to_string(TN_DTYPE_BITS(dtype));
  switch (TN_DTYPE_CODE(dtype)) {
    case kDLBool:
      return "bool";
    case kDLInt:
      return dtype == TN_DTYPE_NONE ? "unknown" : "int" + bits;
    case kDLUInt:
      return "uint" + bits;
    case kDLFloat:
      return "float" + bits;
    case kDLBfloat:
      return "bfloat" + bits;
    case kDLComplex:
      return "complex" + bits;
    case kDLFloat8_e4m3fn:
      return "float8_e4m3fn";
    case kDLFloat8_e4m3fnuz:
      return "float8_e4m3fnuz";
    case kDLFloat8_e5m2:
      return "float8_e5m2";
    case kDLFloat8_e5m2fnuz:
      return "float8_e5m2fnuz";
    case kDLFloat8_e8m0fnu:
      return "float8_e8m0fnu";
    case kDLFloat4_e2m1fn:
      return "float4_e2m1fn";
    default:
      return "type" + std::to_string(TN_DTYPE_CODE(dtype)) + "_" + bits;
  }
}

inline Type::Type(const tn_type& raw) : dtype(raw.dtype), kind(raw.kind) {
  if (raw.rank == TN_RANK_UNKNOWN) return;
  ranked = true;
  dims.assign(raw.dims, raw.dims + raw.rank);
  if (!raw.symbols) return;
  for (uint32_t i = 0; i < raw.rank; ++i)
    symbols.emplace_back(view(raw.symbols[i]));
}

// "float32[N, 3, 224, 224]"
inline std::string type_text(const Type& type) {
  if (!type.ranked) return cat(dtype_name(type.dtype), " of any shape");
  std::string out = dtype_name(type.dtype) + "[";
  for (size_t i = 0; i < type.rank(); ++i) {
    const bool is_named = i < type.symbols.size() && !type.symbols[i].empty();
    out += i ? ", " : "";
    out += type.dims[i] >= 0 ? std::to_string(type.dims[i]) : is_named ? type.symbols[i] : "?";
  }
  return out + "]";
}

inline bool Type::is_static() const {
  if (!ranked) return false;
  for (int64_t dim : dims) {
    if (dim < 0) return false;
  }
  return true;
}

inline TypeView::TypeView(const Type& type) {
  for (const std::string& symbol : type.symbols)
    symbols_.push_back(str(symbol));
  raw_ = {sizeof raw_,      type.kind,
          type.dtype,       type.ranked ? static_cast<uint32_t>(type.dims.size()) : TN_RANK_UNKNOWN,
          type.dims.data(), symbols_.empty() ? nullptr : symbols_.data()};
}

inline Result<Tensor> Tensor::zeros(tn_ctx* ctx, uint32_t dtype, std::span<const int64_t> shape) {
  tn_tensor* raw = nullptr;
  TN_CHECK(services.tensor->alloc(ctx, DenseView(dtype, shape).get(), &raw));
  return take(raw);
}

inline Result<Tensor> Tensor::copy_of(tn_ctx* ctx, const DLTensor& source) {
  tn_tensor* raw = nullptr;
  TN_CHECK(services.tensor->copy(ctx, &source, &raw));
  return take(raw);
}

inline Result<Tensor> Tensor::dense(tn_ctx* ctx) const {
  DLTensor t = dl();
  if (t.device.device_type != kDLCPU) return unsupported("expected a tensor in CPU memory");
  bool plain = true;
  for (int64_t i = t.ndim, stride = 1; i-- > 0; stride *= std::max<int64_t>(t.shape[i], 1))
    plain &= !t.strides || t.shape[i] == 1 || t.strides[i] == stride;
  return plain ? Result<Tensor>(*this) : copy_of(ctx, t);
}

}  // namespace tenon

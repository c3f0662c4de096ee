// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moving elements without looking at them. Cells shows a tensor as cells of whole bytes: types
// under 8 bits are unpacked to one byte each, and packed again by flush().

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

class Cells {
 public:
  explicit Cells(const DLTensor& tensor) : tensor_(tensor) {
    uint32_t bits = tensor.dtype.bits;
    size_ = bits < 8 ? 1 : bits / 8;
    data_ = data_of<char>(tensor);
    if (bits >= 8) return;
    unpacked_.resize(static_cast<size_t>(element_count(tensor)));
    uint32_t per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < unpacked_.size(); ++i) {
      auto byte = static_cast<uint8_t>(data_[i / per_byte]);
      unpacked_[i] = static_cast<char>(byte >> (i % per_byte * bits) & mask);
    }
    data_ = unpacked_.data();
  }
  char* at(int64_t i) const { return data_ + i * int64_t(size_); }
  size_t size() const { return size_; }
  void copy(int64_t to, const Cells& from, int64_t at_index, int64_t count = 1) const {
    if (count == 0) return;
    std::memcpy(at(to), from.at(at_index), static_cast<size_t>(count) * size_);
  }
  // All `count` cells become the one of `from`: what is filled is copied behind itself.
  void fill(const Cells& from, int64_t at_index, int64_t count) const {
    if (count == 0) return;
    constexpr size_t kBlock = size_t{16} << 10;  // stays in the first cache
    copy(0, from, at_index);
    const size_t bytes = static_cast<size_t>(count) * size_;
    for (size_t done = size_, n = 0; done < bytes; done += n) {
      n = std::min({done, kBlock, bytes - done});
      std::memcpy(data_ + done, data_, n);
    }
  }
  // Writes unpacked cells back.
  void flush() {
    uint32_t bits = tensor_.dtype.bits;
    if (bits >= 8) return;
    uint32_t per_byte = 8 / bits;
    auto* packed = data_of<uint8_t>(tensor_);
    std::memset(packed, 0, bytes_of(dtype_of(tensor_), element_count(tensor_)));
    for (size_t i = 0; i < unpacked_.size(); ++i) {
      packed[i / per_byte] |=
          static_cast<uint8_t>(static_cast<uint8_t>(unpacked_[i]) << (i % per_byte * bits));
    }
  }

 private:
  DLTensor tensor_;
  size_t size_ = 1;
  char* data_ = nullptr;
  std::vector<char> unpacked_;
};

// Element strides of a dense row-major shape.
std::vector<int64_t> dense_strides(std::span<const int64_t> shape);

// A strided walk over `shape`: cell `from_at` + sum(coordinate*from_strides) of `from` goes to the
// cell of `to` that is found likewise.
struct Walk {
  std::vector<int64_t> shape;
  std::vector<int64_t> from_strides, to_strides;
  int64_t from_at = 0, to_at = 0;
};
void copy_walk(tn_ctx* ctx, const Walk& walk, const Cells& from, const Cells& to);

// Coordinates that count up with the last axis fastest.
class Odometer {
 public:
  explicit Odometer(std::span<const int64_t> shape);
  Odometer(std::span<const int64_t> shape, int64_t index) : Odometer(shape) {
    for (size_t d = at_.size(); d-- > 0; index /= shape_[d])
      at_[d] = index % shape_[d];
  }
  int64_t operator[](size_t axis) const { return at_[axis]; }
  size_t rank() const { return at_.size(); }
  void next() {
    for (size_t d = at_.size(); d-- > 0;) {
      if (++at_[d] < shape_[d]) return;
      at_[d] = 0;
    }
  }
  int64_t dot(std::span<const int64_t> strides) const {
    int64_t sum = 0;
    for (size_t d = 0; d < at_.size(); ++d)
      sum += at_[d] * strides[d];
    return sum;
  }

 private:
  std::span<const int64_t> shape_;
  std::vector<int64_t> at_;
};

inline std::vector<int64_t> to_vector(std::span<const int64_t> shape) {
  return {shape.begin(), shape.end()};
}
// A tensor's elements as integers, whatever its type: no row says which ones indices may have.
std::vector<int64_t> read_ints(const DLTensor& tensor);
// The same of a tensor that says a shape, which a run may give: refused unless some tensor can
// have it, so that no product of its sizes overflows.
Result<std::vector<int64_t>> read_shape(const DLTensor& tensor, std::string_view name);

// For gradients: dy, whose entries along an axis belong to these places of an axis of `size`.
Value scatter_along(
    Builder& b, Value dy, const std::vector<int64_t>& places, size_t axis, int64_t size);

// View operators: the bytes of input 0 with another shape.
Status copy_as(const Call& call, std::span<const int64_t> shape);

}  // namespace tenon::ops

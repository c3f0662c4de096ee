// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors in a temporary file, for what grows with the number of samples: memory holds only those
// that are being read or written. The file is in the folder that TMPDIR names, else in /tmp. It has
// no name, so that it goes with the process however that ends.

#include <cstdint>
#include <utility>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

class TensorFile {
 public:
  struct Place {
    uint64_t offset = 0;
    uint32_t dtype = TN_DTYPE_NONE;
    std::vector<int64_t> dims = {};
  };

  TensorFile() = default;
  TensorFile(TensorFile&& other) noexcept
      : file_(std::exchange(other.file_, -1)), end_(std::exchange(other.end_, 0)) {}
  TensorFile& operator=(TensorFile other) noexcept {
    std::swap(file_, other.file_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~TensorFile();

  // tensor: row-major, in the memory of the CPU.
  Result<Place> add(const DLTensor& tensor);
  // The same again, with other numbers.
  Status write(const Place& place, const DLTensor& tensor) const;
  Result<Tensor> read(tn_ctx* ctx, const Place& place) const;
  // Gives the room back to the disk. Where its file system cannot, it does at the end.
  void drop(const Place& place) const;

 private:
  int file_ = -1;  // opened by the first add
  uint64_t end_ = 0;
};

}  // namespace tenon::quantizer

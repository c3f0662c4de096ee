// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors in a temporary file, for what grows with the number of samples: memory holds only the
// first MiB and those that are being read or written. The file, made when there is more, is in the
// folder that TMPDIR names, else in /tmp. It has no name, so that it goes with the process however
// that ends.

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
      : front_(std::move(other.front_)),
        file_(std::exchange(other.file_, -1)),
        end_(std::exchange(other.end_, 0)) {}
  TensorFile& operator=(TensorFile other) noexcept {
    std::swap(front_, other.front_);
    std::swap(file_, other.file_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~TensorFile();

  // tensor: row-major, in the memory of the CPU.
  Result<Place> add(const DLTensor& tensor);
  // The same again, with other numbers.
  Status write(const Place& place, const DLTensor& tensor);
  Result<Tensor> read(tn_ctx* ctx, const Place& place) const;
  // Gives the room back to the disk. Where its file system cannot, it does at the end.
  void drop(const Place& place) const;

 private:
  bool is_in_memory(const Place& place) const { return place.offset < front_.size(); }

  std::vector<char> front_;  // of the file: what stays in memory
  int file_ = -1;            // of all behind that; opened when there is some
  uint64_t end_ = 0;
};

}  // namespace tenon::quantizer

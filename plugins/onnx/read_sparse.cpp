// SPDX-License-Identifier: Apache-2.0
#include "read_sparse.hpp"

#include <cstring>
#include <span>

namespace tenon::onnx_plugin {
namespace {

// A few bytes may claim any shape. So many elements may be all zeros, and so many more for each
// value that is there; files in use have one of ten to one of a hundred.
constexpr int64_t kFewElements = int64_t{1} << 26;
constexpr int64_t kMostForEach = 1024;

Result<int64_t> element_count_of(const onnx::SparseTensorProto& from, int64_t n_values) {
  int64_t count = 1;
  for (int64_t dim : from.dims()) {
    if (dim < 0) return invalid(cat("expected dimensions of at least 0, got ", dim));
    if (__builtin_mul_overflow(count, dim, &count)) return invalid("its size overflows");
  }
  if (count > kFewElements && count / kMostForEach > n_values)
    return invalid(cat("expected at most ", kMostForEach,
                       " elements for each value that is not 0, got ", count, " for ", n_values));
  return count;
}

// Rows of `width` indices, which may begin at any byte.
class Places {
 public:
  Places(const Tensor& indices, int64_t width, const onnx::SparseTensorProto& of)
      : data_(indices.data<char>()), width_(width), of_(of) {}

  // Of the flattened tensor.
  Result<int64_t> at(int64_t row) const {
    int64_t place = 0;
    for (int64_t i = 0; i < width_; ++i) {
      int64_t index = 0;
      std::memcpy(&index, data_ + (row * width_ + i) * 8, 8);
      if (!is_flat()) {
        const int64_t dim = of_.dims(static_cast<int>(i));
        if (index < 0 || index >= dim)
          return invalid(
              cat("index ", row, ", axis ", i, ": expected 0 to ", dim - 1, ", got ", index));
        place = place * dim + index;
      } else {
        place = index;
      }
    }
    return place;
  }

 private:
  bool is_flat() const { return width_ == 1; }

  const char* data_;
  int64_t width_;
  const onnx::SparseTensorProto& of_;
};

// How many indices say where one value is.
Result<int64_t> index_width(const Tensor& indices,
                            int64_t n_values,
                            const onnx::SparseTensorProto& from) {
  const DLTensor table = indices.dl();
  if (dtype_of(table) != TN_I64)
    return invalid(cat("indices: expected int64, got ", dtype_name(dtype_of(table))));
  const std::span<const int64_t> shape = shape_of(table);
  const bool is_flat = shape.size() == 1 && shape[0] == n_values;
  if (is_flat) return 1;
  const bool has_axes =
      shape.size() == 2 && shape[0] == n_values && shape[1] == from.dims_size() && shape[1] > 0;
  if (has_axes) return shape[1];
  return invalid(cat("indices: expected one of each of ", n_values, " values, or one for each of ",
                     from.dims_size(), " axes"));
}

Result<Tensor> read(ModelFiles& files, const onnx::SparseTensorProto& from) {
  TN_TRY(values, read_tensor(files, from.values(), "values"));
  const DLTensor row = values.dl();
  const std::span<const int64_t> shape = shape_of(row);
  if (shape.size() != 1) return invalid(cat("values: expected one axis, got ", shape.size()));
  const uint64_t bits = TN_DTYPE_BITS(dtype_of(row));
  if (bits < 8) return unsupported(cat("values of ", dtype_name(dtype_of(row))));
  TN_TRY(count, element_count_of(from, shape[0]));
  TN_TRY(indices, read_tensor(files, from.indices(), "indices"));
  TN_TRY(width, index_width(indices, shape[0], from));
  const Places places(indices, width, from);
  const std::vector<int64_t> dims(from.dims().begin(), from.dims().end());
  TN_TRY(dense, Tensor::zeros(files.ctx(), dtype_of(row), dims));
  const size_t bytes = bits / 8;
  int64_t last = -1;
  for (int64_t i = 0; i < shape[0]; ++i) {
    TN_TRY(place, places.at(i));
    if (place <= last || place >= count)
      return invalid(cat("index ", i, ": expected ", last + 1, " to ", count - 1,
                         " (indices rise), got ", place));
    last = place;
    std::memcpy(dense.data<char>() + static_cast<size_t>(place) * bytes,
                values.data<char>() + static_cast<size_t>(i) * bytes, bytes);
  }
  return dense;
}

}  // namespace

Result<Tensor> read_sparse_tensor(ModelFiles& files, const onnx::SparseTensorProto& from) {
  Result<Tensor> made = read(files, from);
  if (!made.ok()) return std::move(made).status().in(cat("sparse tensor ", from.values().name()));
  return made;
}

}  // namespace tenon::onnx_plugin

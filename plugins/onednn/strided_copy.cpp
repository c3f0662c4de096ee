// SPDX-License-Identifier: Apache-2.0
#include "strided_copy.hpp"

#include <cstring>

namespace tenon::onednn {
namespace {

struct Shape {
  Dims dims;
  Dims from;  // strides in elements
  Dims to;
};

template <class T>
void copy_rows(const Shape& shape, const T* from, T* to, int64_t begin, int64_t end) {
  size_t rank = shape.dims.size();
  int64_t width = shape.dims[rank - 1];
  int64_t from_step = shape.from[rank - 1];
  int64_t to_step = shape.to[rank - 1];
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row;
    int64_t from_at = 0;
    int64_t to_at = 0;
    for (size_t axis = rank - 1; axis-- > 0;) {
      int64_t index = rest % shape.dims[axis];
      rest /= shape.dims[axis];
      from_at += index * shape.from[axis];
      to_at += index * shape.to[axis];
    }
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to + to_at, from + from_at, static_cast<size_t>(width) * sizeof(T));
      continue;
    }
    for (int64_t i = 0; i < width; ++i)
      to[to_at + i * to_step] = from[from_at + i * from_step];
  }
}

template <class T>
KernelFunction copier(Shape shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.dims.size(); ++i)
    rows *= shape.dims[i];
  int64_t row_bytes = shape.dims.back() * static_cast<int64_t>(sizeof(T));
  return [shape = std::move(shape), rows, row_bytes](const kernels::Context& context,
                                                     void* const* pointers) -> const char* {
    const T* from = static_cast<const T*>(pointers[0]);
    T* to = static_cast<T*>(pointers[1]);
    kernels::parallel_for(context.parallel, rows, kernels::grain_rows(row_bytes),
                          [&](int64_t lo, int64_t hi) { copy_rows(shape, from, to, lo, hi); });
    return nullptr;
  };
}

}  // namespace

Step strided_copy(std::string name, const View& from, const View& to) {
  Step step{.name = std::move(name), .kernel = "tenon:copy", .always_succeeds = true};
  step.bytes = static_cast<double>(from.bytes() + to.bytes());
  step.places = {{from.buffer, from.offset_bytes()}, {to.buffer, to.offset_bytes()}};
  Shape shape{to.dims, from.strides, to.strides};
  if (shape.dims.empty()) shape = {{1}, {1}, {1}};
  switch (kernels::element_bytes(to.type)) {
    case 1:
      step.kernel_function = copier<uint8_t>(std::move(shape));
      break;
    case 2:
      step.kernel_function = copier<uint16_t>(std::move(shape));
      break;
    case 4:
      step.kernel_function = copier<uint32_t>(std::move(shape));
      break;
    default:
      step.kernel_function = copier<uint64_t>(std::move(shape));
      break;
  }
  return step;
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "cells.hpp"

#include "numbers.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

template <class Cell>
void copy_line(
    const Walk& walk, const Cells& from, const Cells& to, int64_t source, int64_t target) {
  int64_t count = walk.shape.back();
  int64_t from_step = walk.from_strides.back(), to_step = walk.to_strides.back();
  auto* in = reinterpret_cast<const Cell*>(from.at(source));
  auto* out = reinterpret_cast<Cell*>(to.at(target));
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * to_step, in + i * from_step, sizeof(Cell));
}

struct Cell16 {
  char bytes[16];
};

}  // namespace

std::vector<int64_t> dense_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    // Of no tensor: a shape that was read, and that nothing can be allocated for.
    if (__builtin_mul_overflow(stride, shape[d], &stride)) stride = 0;
  }
  return strides;
}

// Not inline: GCC 12 warns of its vector's end where the rank is known.
Odometer::Odometer(std::span<const int64_t> shape) : shape_(shape), at_(shape.size(), 0) {}

void copy_walk(tn_ctx* ctx, const Walk& walk, const Cells& from, const Cells& to) {
  if (element_count(walk.shape) == 0) return;
  if (walk.shape.empty()) return to.copy(walk.to_at, from, walk.from_at);
  std::span<const int64_t> outer(walk.shape.data(), walk.shape.size() - 1);
  auto lines = [&](uint64_t begin, uint64_t end) {
    Odometer at(outer, static_cast<int64_t>(begin));
    for (uint64_t line = begin; line < end; ++line, at.next()) {
      int64_t source = walk.from_at + at.dot(walk.from_strides);
      int64_t target = walk.to_at + at.dot(walk.to_strides);
      switch (from.size()) {
        case 1:
          copy_line<char>(walk, from, to, source, target);
          break;
        case 2:
          copy_line<uint16_t>(walk, from, to, source, target);
          break;
        case 4:
          copy_line<uint32_t>(walk, from, to, source, target);
          break;
        case 8:
          copy_line<uint64_t>(walk, from, to, source, target);
          break;
        default:
          copy_line<Cell16>(walk, from, to, source, target);
      }
    }
  };
  uint64_t grain = 1 + 16384 / static_cast<uint64_t>(walk.shape.back());
  parallel_for(ctx, static_cast<uint64_t>(element_count(outer)), grain, lines);
}

std::vector<int64_t> read_ints(const DLTensor& tensor) {
  const char* data = data_of<const char>(tensor);
  std::vector<int64_t> out(static_cast<size_t>(element_count(tensor)));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_integer(data, dtype_of(tensor), static_cast<int64_t>(i));
  return out;
}

Result<std::vector<int64_t>> read_shape(const DLTensor& tensor, std::string_view name) {
  std::vector<int64_t> out = read_ints(tensor);
  TN_CHECK(expect_shape(name, out));
  return out;
}

Status copy_as(const Call& call, std::span<const int64_t> shape) {
  const DLTensor& in = call.in(0);
  if (element_count(shape) != element_count(in)) {
    return invalid(cat("expected a shape of ", element_count(in), " elements, got one of ",
                       element_count(shape)));
  }
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  uint64_t bytes = bytes_of(call.dtype(0), element_count(in));
  if (bytes > 0) std::memcpy(data_of<char>(out), data_of<char>(in), bytes);
  return {};
}

Value scatter_along(
    Builder& b, Value dy, const std::vector<int64_t>& places, size_t axis, int64_t size) {
  Type type = b.fixed(dy, "the gradient");
  if (type.dims.size() <= axis) return {};
  std::vector<int64_t> whole = type.dims, line(type.dims.size(), 1);
  whole[axis] = size;
  line[axis] = type.dims[axis];
  Value zeros = b.op("Expand", {b.number(0, type.dtype), b.ints(whole)});
  Value at = b.op("Expand", {b.reshape(b.ints(places), line), b.ints(type.dims)});
  return b.op("ScatterElements", {zeros, at, dy},
              {{"axis", static_cast<int64_t>(axis)}, {"reduction", "add"}});
}

}  // namespace tenon::ops

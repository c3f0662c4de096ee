// SPDX-License-Identifier: Apache-2.0
#include "strided_copy.hpp"

#include <cstring>

#include "kernels/copy.h"
#include "lowering.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kLeastSide = 16;

size_t innermost(const View& view) {
  size_t found = view.dims.size();
  for (size_t axis = 0; axis < view.dims.size(); ++axis)
    if (view.dims[axis] > 1 && view.strides[axis] == 1) found = axis;
  return found;
}

// Of the axis with those that continue it on both sides.
int64_t joined_extent(const View& from, const View& to, size_t axis) {
  int64_t extent = to.dims[axis];
  for (size_t next = 0; next < to.dims.size();) {
    const bool continues = next != axis && to.dims[next] > 1 &&
                           from.strides[next] == from.strides[axis] * extent &&
                           to.strides[next] == to.strides[axis] * extent;
    if (continues) extent *= to.dims[next];
    next = continues ? 0 : next + 1;
  }
  return extent;
}

// Whether both sides are one block of memory in the same order.
bool is_one_block(const kernels::StridedCopy& copy) {
  int64_t dense = 1;
  for (int64_t d = copy.rank - 1; d >= 0; dense *= copy.dims[d--])
    if (copy.src_strides[d] != dense || copy.dst_strides[d] != dense) return false;
  return true;
}

}  // namespace

bool is_transposed(const View& from, const View& to) {
  const size_t src = innermost(from);
  const size_t dst = innermost(to);
  const size_t rank = to.dims.size();
  return src != dst && src < rank && dst < rank && joined_extent(from, to, src) >= kLeastSide &&
         joined_extent(from, to, dst) >= kLeastSide;
}

Step strided_copy(std::string name, const View& from, const View& to) {
  Step step{.name = std::move(name), .kernel = "tenon:copy", .always_succeeds = true};
  step.bytes = static_cast<double>(from.bytes() + to.bytes());
  step.places = {{from.buffer, from.offset_bytes()}, {to.buffer, to.offset_bytes()}};
  kernels::StridedCopy copy;
  copy.element_bytes = kernels::element_bytes(to.type);
  for (size_t axis = 0; axis < to.dims.size(); ++axis) {
    if (to.dims[axis] == 1) continue;
    if (copy.rank == kernels::kCopyMaxRank)
      throw CompileError(step.name + ": more than eight axes");
    copy.dims[copy.rank] = to.dims[axis];
    copy.src_strides[copy.rank] = from.strides[axis];
    copy.dst_strides[copy.rank++] = to.strides[axis];
  }
  constexpr int64_t kSmallBytes = int64_t{16} << 10;
  if (is_one_block(copy) && to.bytes() <= kSmallBytes && copy.element_bytes > 0) {
    step.kernel_function = [bytes = static_cast<size_t>(to.bytes())](
                               const kernels::Context&, void* const* pointers) -> const char* {
      std::memcpy(pointers[1], pointers[0], bytes);
      return nullptr;
    };
    return step;
  }
  step.kernel_function = [copy](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::StridedCopy call = copy;
    call.src = pointers[0];
    call.dst = pointers[1];
    kernels::strided_copy(context, call);
    return nullptr;
  };
  return step;
}

}  // namespace tenon::onednn

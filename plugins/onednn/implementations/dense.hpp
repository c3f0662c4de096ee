// SPDX-License-Identifier: Apache-2.0
#pragma once
// What operators of our own kernels share: inputs and outputs dense, row-major and of the graph's
// own types, parameters (axes, sizes, indices) read when the step runs, so that it makes no
// difference whether they are constants.

#include "handlers.hpp"
#include "kernels/numbers.h"

namespace tenon::onednn {

// Adds one step for the whole node. The kernel's pointers: the inputs in order, the outputs in
// order, and `scratch_bytes` of memory last; nullptr for what the node leaves out. kOverFirstInput:
// the first output may have the address of the first input, where that is not read any more.
// kAsStored: the kernel only moves numbers of the first input, which stay bytes where they are
// quantized to 8 bits with one scale.
enum class FirstOutput : uint8_t { kApart, kOverFirstInput, kAsStored };
// As what the numbers of this input are moved under kAsStored.
ElementType moved_type(const Lowering& lowering, int value);
void lower_dense(Lowering& lowering,
                 int node,
                 const char* kernel,
                 KernelFunction function,
                 int64_t scratch_bytes = 0,
                 FirstOutput first_output = FirstOutput::kApart);

// [outer, k, inner] around one axis.
struct AxisSplit {
  int64_t outer = 1;
  int64_t k = 1;
  int64_t inner = 1;
};
AxisSplit split_at(const Dims& dims, int64_t axis);
// Element i of an i32 or i64 parameter.
inline int64_t integer_at(const void* data, ElementType type, int64_t i) {
  return type == ElementType::kI64 ? static_cast<const int64_t*>(data)[i]
                                   : int64_t{static_cast<const int32_t*>(data)[i]};
}
// An index may count from the end. False: it is outside of the axis, and outside_text() says how.
bool resolve_unusual_index(int64_t* index, int64_t extent);
inline bool resolve_index(int64_t* index, int64_t extent) {
  if (static_cast<uint64_t>(*index) < static_cast<uint64_t>(extent)) return true;
  int64_t unusual = *index;  // so that the index itself may stay in a register
  const bool is_inside = resolve_unusual_index(&unusual, extent);
  *index = unusual;
  return is_inside;
}
// Of the last index of this thread that was outside: "indices: expected -5..4, got 7". Until the
// next one.
const char* outside_text();
// Of indices of GatherElements and ScatterElements, which have as many axes as the data: where
// their row `row`, over all axes but the last, begins in the data, but for the axis that they are
// along.
int64_t row_start(const Dims& index_dims, const Dims& strides, int64_t axis, int64_t row);
// The value as it lies, dense and row-major, in its own type. Narrow types have no other form:
// nothing but kernels/narrow.h makes them.
View read_dense(Lowering& lowering, int value);
// Whether the input is absent or i32 or i64.
bool is_integer_parameter(const Graph& graph, const Node& node, size_t input);

}  // namespace tenon::onednn

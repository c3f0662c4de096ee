// SPDX-License-Identifier: Apache-2.0
// ReverseSequence: the first steps of each sequence, as many as its length says, in reverse.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

struct Reverse {
  Dims dims;
  Dims strides;
  size_t batch = 1;
  size_t time = 0;
  ElementType lengths_type = ElementType::kI64;
  int64_t element_bytes = 4;
};

const char* check_lengths(const Reverse& reverse, const void* lengths) {
  thread_local std::array<char, 96> why;
  const int64_t steps = reverse.dims[reverse.time];
  for (int64_t i = 0; i < reverse.dims[reverse.batch]; ++i) {
    const int64_t length = integer_at(lengths, reverse.lengths_type, i);
    if (length >= 0 && length <= steps) continue;
    std::snprintf(why.data(), why.size(), "sequence_lens: expected 0..%lld, got %lld",
                  static_cast<long long>(steps), static_cast<long long>(length));
    return why.data();
  }
  return nullptr;
}

// Rows end with the later one of the two axes.
const char* run(const Reverse& reverse, const kernels::Context& context, void* const* pointers) {
  if (const char* why = check_lengths(reverse, pointers[1])) return why;
  const size_t last = std::max(reverse.batch, reverse.time);
  int64_t rows = 1;
  for (size_t i = 0; i <= last; ++i)
    rows *= reverse.dims[i];
  const int64_t row_bytes = reverse.strides[last] * reverse.element_bytes;
  const int64_t time_rows = reverse.strides[reverse.time] / reverse.strides[last];
  const int64_t batch_rows = reverse.strides[reverse.batch] / reverse.strides[last];
  const char* src = static_cast<const char*>(pointers[0]);
  char* dst = static_cast<char*>(pointers[2]);
  kernels::parallel_for(
      context.parallel, rows, kernels::grain_rows(2 * row_bytes), [&](int64_t lo, int64_t hi) {
        for (int64_t row = lo; row < hi; ++row) {
          const int64_t sequence = row / batch_rows % reverse.dims[reverse.batch];
          const int64_t step = row / time_rows % reverse.dims[reverse.time];
          const int64_t length = integer_at(pointers[1], reverse.lengths_type, sequence);
          const int64_t from = step < length ? row + (length - 1 - 2 * step) * time_rows : row;
          std::memcpy(dst + row * row_bytes, src + from * row_bytes,
                      static_cast<size_t>(row_bytes));
        }
      });
  return nullptr;
}

}  // namespace

std::string refuse_reverse_sequence(const Graph& graph, const Node& node) {
  return is_integer_parameter(graph, node, 1) ? "" : "only i32 and i64 lengths";
}

void lower_reverse_sequence(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& src = lowering.graph().values[node.inputs[0]];
  const size_t rank = src.dims.size();
  const Reverse reverse{
      .dims = src.dims,
      .strides = row_major_strides(src.dims),
      .batch = static_cast<size_t>(positive_axis(node.integer("batch_axis", 1), rank)),
      .time = static_cast<size_t>(positive_axis(node.integer("time_axis", 0), rank)),
      .lengths_type = lowering.graph().values[node.inputs[1]].type,
      .element_bytes = kernels::element_bytes(src.type)};
  lower_dense(lowering, index, "tenon:reverse_sequence",
              [reverse](const kernels::Context& context, void* const* pointers) {
                return run(reverse, context, pointers);
              });
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of 4 bits as files state them: which matrix a DequantizeLinear of packed constants is.

#include <optional>
#include <string>

#include "graph/graph.hpp"
#include "kernels/int4_product.h"

namespace tenon::onednn {

// Numbers [group, column] of a matrix; strides are 0 where one stands for all.
struct Int4Places {
  int64_t group_stride = 0;
  int64_t column_stride = 0;

  int64_t operator()(int64_t group, int64_t column) const {
    return group * group_stride + column * column_stride;
  }
};

// A constant matrix [k, n]: scale * (value - zero), one of each for `block` rows of a column.
struct Int4Matrix {
  int64_t k = 0;
  int64_t n = 0;
  int64_t block = 0;
  kernels::Int4Values quantized = {};  // 0 to 15
  int64_t quantized_bytes = 0;
  const void* scales = nullptr;
  ElementType scale_type = ElementType::kF32;  // or kF16, kBf16
  int64_t scale_bytes = 0;
  Int4Places scale_places = {};
  kernels::Int4Values zeros = {};  // of [group, column]; no data: zero_point everywhere
  int64_t zero_bytes = 0;
  uint8_t zero_point = kernels::kInt4Zero;

  // By what the kernel goes: a divisor of `block` that it takes; 0: there is none.
  int64_t kernel_group() const;
  uint8_t zero_at(int64_t row, int64_t column) const;
};

// The matrix that the node, a DequantizeLinear, makes of packed constants; is_transposed: it states
// [n, k]. Nothing, and in one sentence why, where the kernel does not take it.
std::optional<Int4Matrix> int4_matrix(const Graph& graph,
                                      const Node& node,
                                      bool is_transposed,
                                      std::string* why_not);
// That of ONNX Runtime's MatMulNBits.
std::optional<Int4Matrix> int4_matrix_of_n_bits(const Graph& graph,
                                                const Node& node,
                                                std::string* why_not);
// The DequantizeLinear of packed constants that makes the value; nullptr: another node does.
const Node* packed_weights_of(const Graph& graph, int value);
// Whether a bias of n columns, if there is one, is a constant of f32.
bool is_known_row(const Graph& graph, int bias, int64_t n);
// Why the node, which reads `value`, computes from it otherwise than packed; empty: it does not.
std::string why_not_packed(const Graph& graph, int user, int value);
// What a DequantizeLinear of packed constants makes, as floats in its own order of axes.
void expand_packed(const Graph& graph, const Node& node, float* to);

}  // namespace tenon::onednn

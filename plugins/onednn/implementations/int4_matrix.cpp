// SPDX-License-Identifier: Apache-2.0
#include "int4_matrix.hpp"

#include <algorithm>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kLargestGroup = 128;
constexpr int64_t kGroups[] = {128, 64, 32, 16};

bool is_real_scale(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBf16;
}

// How a DequantizeLinear states its scales along the axis that it names.
struct Stated {
  int64_t axis = 0;
  int64_t block = 0;  // 0: one scale for each index of the axis
  bool is_one = false;
};

Stated stated_scales(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const Value& scale = graph.values[node.inputs[1]];
  Stated made;
  made.is_one = scale.count() == 1;
  if (made.is_one) return made;
  made.axis = positive_axis(node.integer("axis", 1), dims.size());
  const auto at = static_cast<size_t>(made.axis);
  made.block = node.integer("block_size", 0);
  if (made.block == 0 && scale.dims.size() == dims.size() && dims.size() > 1)
    made.block = (dims[at] + scale.dims[at] - 1) / scale.dims[at];
  // A block that is longer is all of the axis.
  if (at < dims.size()) made.block = std::min(made.block, std::max<int64_t>(dims[at], 1));
  return made;
}

float scale_number(const void* scales, ElementType type, int64_t i) {
  return kernels::visit(type, [&]<class T>() {
    return kernels::number_cast<float>(static_cast<const T*>(scales)[i]);
  });
}

uint8_t flip_of(ElementType type) {
  return type == ElementType::kS4 ? kernels::kInt4Zero : 0;
}

void add_zeros(const Graph& graph, const Node& node, Int4Matrix& made) {
  const ElementType type = graph.values[node.inputs[0]].type;
  made.zero_point =
      flip_of(type);  // none: 0, of quantized values with a sign that is 8 of those without
  if (node.input(2) == kNone) return;
  const Value& zeros = graph.values[node.inputs[2]];
  made.zeros = {static_cast<const uint8_t*>(zeros.data), made.scale_places.group_stride,
                made.scale_places.column_stride, flip_of(type)};
  made.zero_bytes = (zeros.count() + 1) / 2;
}

std::string refuse_n_bits(const Graph& graph, const Node& node) {
  if (node.integer("bits", 4) != 4) return "MatMulNBits: only 4 bits";
  if (node.integer("weight_prepacked", 0) != 0) return "MatMulNBits: prepacked weights";
  if (node.input(4) != kNone) return "MatMulNBits: g_idx";
  for (size_t i : {1, 2})
    if (node.input(i) == kNone || graph.values[node.inputs[i]].data == nullptr)
      return "MatMulNBits: weights or scales that are no constants";
  if (graph.values[node.inputs[1]].type != ElementType::kU8) return "MatMulNBits: B is not u8";
  if (!is_real_scale(graph.values[node.inputs[2]].type)) return "MatMulNBits: scales of this type";
  if (node.input(3) == kNone) return {};
  const Value& zeros = graph.values[node.inputs[3]];
  if (zeros.type != ElementType::kU8) return "MatMulNBits: zero points in floating point";
  return zeros.data == nullptr ? "MatMulNBits: zero points that are no constants" : "";
}

}  // namespace

bool is_known_row(const Graph& graph, int bias, int64_t n) {
  if (bias == kNone) return true;
  const Value& row = graph.values[bias];
  return row.data != nullptr && row.type == ElementType::kF32 && row.count() == n &&
         (n == 1 || row.dims.back() == n);
}

int64_t Int4Matrix::kernel_group() const {
  if (block >= k) {  // one scale for a column: any group does
    const int64_t whole = (k + 15) / 16 * 16;
    return std::min(whole, kLargestGroup);
  }
  if (block <= kLargestGroup) return kernels::takes_int4_group(block) ? block : 0;
  for (int64_t group : kGroups)
    if (block % group == 0) return group;
  return 0;
}

uint8_t Int4Matrix::zero_at(int64_t row, int64_t column) const {
  return zeros.data == nullptr ? zero_point : zeros.at(row / block, column);
}

const Node* packed_weights_of(const Graph& graph, int value) {
  const int producer = value == kNone ? kNone : graph.values[value].producer;
  if (producer == kNone || graph.nodes[producer].op != "DequantizeLinear") return nullptr;
  const Node& node = graph.nodes[producer];
  return kernels::is_int4_type(graph.values[node.inputs[0]].type) ? &node : nullptr;
}

std::optional<Int4Matrix> int4_matrix(const Graph& graph,
                                      const Node& node,
                                      bool is_transposed,
                                      std::string* why_not) {
  const Value& quantized = graph.values[node.inputs[0]];
  const Value& scales = graph.values[node.inputs[1]];
  auto refuse = [&](const char* why) {
    *why_not = why;
    return std::nullopt;
  };
  if (quantized.dims.size() != 2) return refuse("4-bit weights that are no matrix");
  const int64_t k_axis = is_transposed ? 1 : 0;
  Int4Matrix made{.k = quantized.dims[static_cast<size_t>(k_axis)],
                  .n = quantized.dims[static_cast<size_t>(1 - k_axis)]};
  const Dims strides = row_major_strides(quantized.dims);
  made.quantized = {static_cast<const uint8_t*>(quantized.data),
                    strides[static_cast<size_t>(k_axis)], strides[static_cast<size_t>(1 - k_axis)],
                    flip_of(quantized.type)};
  made.quantized_bytes = (quantized.count() + 1) / 2;
  made.scales = scales.data;
  made.scale_type = scales.type;
  made.scale_bytes = scales.bytes();
  const Stated stated = stated_scales(graph, node);
  made.block = made.k;
  if (!stated.is_one && stated.block == 0) {
    if (stated.axis == k_axis) return refuse("4-bit weights with a scale for each row");
    made.scale_places = {0, 1};
  } else if (!stated.is_one) {
    if (stated.axis != k_axis) return refuse("4-bit weights in blocks along their columns");
    made.block = stated.block;
    const Dims places = row_major_strides(scales.dims);
    made.scale_places = {places[static_cast<size_t>(k_axis)],
                         places[static_cast<size_t>(1 - k_axis)]};
  }
  add_zeros(graph, node, made);
  if (made.kernel_group() == 0) return refuse("4-bit weights in blocks that 16 does not divide");
  return made;
}

std::optional<Int4Matrix> int4_matrix_of_n_bits(const Graph& graph,
                                                const Node& node,
                                                std::string* why_not) {
  *why_not = refuse_n_bits(graph, node);
  if (!why_not->empty()) return std::nullopt;
  const Value& quantized = graph.values[node.inputs[1]];
  const Value& scales = graph.values[node.inputs[2]];
  Int4Matrix made{
      .k = node.integer("K", 0), .n = node.integer("N", 0), .block = node.integer("block_size", 0)};
  if (made.k <= 0 || made.n <= 0 || made.block <= 0) {
    *why_not = "MatMulNBits: K, N and block_size that are no sizes";
    return std::nullopt;
  }
  const int64_t blocks = (made.k + made.block - 1) / made.block;
  made.quantized = {static_cast<const uint8_t*>(quantized.data), 1, blocks * made.block, 0};
  made.quantized_bytes = quantized.bytes();
  made.scales = scales.data;
  made.scale_type = scales.type;
  made.scale_bytes = scales.bytes();
  made.scale_places = {1, blocks};
  int64_t n_zeros = 0;
  if (node.input(3) != kNone) {
    const Value& zeros = graph.values[node.inputs[3]];
    n_zeros = zeros.count();
    made.zeros = {static_cast<const uint8_t*>(zeros.data), 1, (blocks + 1) / 2 * 2, 0};
    made.zero_bytes = zeros.bytes();
  }
  const bool fits = quantized.count() * 2 == made.n * blocks * made.block &&
                    scales.count() == made.n * blocks &&
                    (n_zeros == 0 || n_zeros == made.n * ((blocks + 1) / 2));
  if (!fits) *why_not = "MatMulNBits: operands of other sizes than K, N and block_size say";
  if (fits && made.kernel_group() == 0) *why_not = "MatMulNBits: blocks that 16 does not divide";
  return why_not->empty() ? std::optional(made) : std::nullopt;
}

std::string why_not_packed(const Graph& graph, int user, int value) {
  const Node& node = graph.nodes[user];
  const bool is_gemm = node.op == "Gemm";
  if (node.op != "MatMul" && !is_gemm) return "4-bit weights that " + node.op + " reads";
  if (node.input(1) != value || node.input(0) == value || node.input(2) == value)
    return "4-bit weights that are no right operand";
  if (is_gemm && node.integer("transA", 0) != 0) return "the first operand is transposed";
  std::string why;
  const std::optional<Int4Matrix> matrix = int4_matrix(
      graph, *packed_weights_of(graph, value), is_gemm && node.integer("transB", 0) != 0, &why);
  if (!matrix || is_known_row(graph, node.input(2), matrix->n)) return why;
  return "the bias is no known row";
}

void expand_packed(const Graph& graph, const Node& node, float* to) {
  const Value& quantized = graph.values[node.inputs[0]];
  const Value& scales = graph.values[node.inputs[1]];
  const Stated stated = stated_scales(graph, node);
  const AxisSplit split =
      stated.is_one ? AxisSplit{1, 1, quantized.count()} : split_at(quantized.dims, stated.axis);
  const int64_t block = stated.is_one ? 1 : std::max<int64_t>(stated.block, 1);
  const int64_t blocks = (split.k + block - 1) / block;
  const uint8_t flip = flip_of(quantized.type);
  const kernels::Int4Values values{static_cast<const uint8_t*>(quantized.data), 1, 0, flip};
  kernels::Int4Values zero{nullptr, 1, 0, flip};
  if (node.input(2) != kNone)
    zero.data = static_cast<const uint8_t*>(graph.values[node.inputs[2]].data);
  // A scale for each index of an axis repeats for all that is outside of it.
  const bool repeats = !stated.is_one && stated.block == 0;
  for (int64_t i = 0; i < quantized.count(); ++i) {
    const int64_t inner = i % split.inner, along = i / split.inner % split.k;
    const int64_t outer = i / split.inner / split.k;
    int64_t at = repeats ? along : (outer * blocks + along / block) * split.inner + inner;
    if (stated.is_one) at = 0;
    const int32_t less = zero.data == nullptr ? flip : zero.at(at, 0);
    to[i] = static_cast<float>(values.at(i, 0) - less) * scale_number(scales.data, scales.type, at);
  }
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "n_bits.hpp"

#include <cstring>
#include <optional>
#include <vector>

namespace tenon::onnx_plugin {
namespace {

constexpr const char* kDomain = "com.microsoft";
constexpr uint8_t kMiddle = 8;  // the zero point of MatMulNBits where none is stated

// A constant matrix quantized to 4 bits; `k` is its summed axis.
struct Packed {
  DLTensor quantized{}, scales{};
  Tensor quantized_keeper = {}, scale_keeper = {}, zero_keeper = {};
  int64_t k = 0, n = 0, block = 0, blocks = 0;
  bool is_transposed = false;  // [n, k]
  bool has_sign = false;
  bool has_zeros = false;

  // 0 to 15, those with a sign moved up by 8. Of [k or blocks, n].
  uint8_t element(const Tensor& of, int64_t row, int64_t column, int64_t rows) const {
    const int64_t at = is_transposed ? column * rows + row : row * n + column;
    const uint8_t both = of.data<uint8_t>()[at / 2];
    const auto nibble = static_cast<uint8_t>(both >> (at % 2 * 4) & 15);
    return has_sign ? nibble ^ kMiddle : nibble;
  }
  uint8_t zero(int64_t block_row, int64_t column) const {
    if (has_zeros) return element(zero_keeper, block_row, column, blocks);
    return has_sign ? kMiddle : 0;
  }
};

bool is_product(Node node) {
  if (node.is("MatMul") && node.domain().empty()) return true;
  return node.is("Gemm") && node.attr_int("transA") == 0 && node.attr_float("alpha", 1) == 1 &&
         node.attr_float("beta", 1) == 1;
}

// The constants of a matrix of four bits, without its sizes.
std::optional<Packed> packed_constants(Node from) {
  Value quantized = from.input(0), scales = from.input(1), zeros = from.input(2);
  const bool is_known =
      quantized.is_constant() && scales.is_constant() && (!zeros || zeros.is_constant());
  const uint32_t dtype = quantized.dtype();
  if (!is_known || (dtype != TN_I4 && dtype != TN_U4)) return std::nullopt;
  Packed made{.quantized = quantized.constant().dl(),
              .scales = scales.constant().dl(),
              .quantized_keeper = quantized.constant(),
              .scale_keeper = scales.constant(),
              .has_sign = dtype == TN_I4,
              .has_zeros = static_cast<bool>(zeros)};
  if (zeros) made.zero_keeper = zeros.constant();
  const bool is_matrix = made.quantized.ndim == 2 && made.scales.ndim == 2;
  return is_matrix ? std::optional(std::move(made)) : std::nullopt;
}

std::optional<Packed> packed_weights(Node node) {
  if (!is_product(node)) return std::nullopt;
  Node from = node.input(1).producer();
  if (!from || !from.is("DequantizeLinear")) return std::nullopt;
  std::optional<Packed> found = packed_constants(from);
  if (!found) return std::nullopt;
  Packed& made = *found;
  made.is_transposed = node.is("Gemm") && node.attr_int("transB") != 0;
  const int64_t axis = from.attr_int("axis", 1), k_axis = made.is_transposed ? 1 : 0;
  if ((axis < 0 ? axis + 2 : axis) != k_axis) return std::nullopt;
  made.k = made.quantized.shape[k_axis];
  made.n = made.quantized.shape[1 - k_axis];
  made.blocks = made.scales.shape[k_axis];
  made.block = from.attr_int("block_size");
  if (made.block == 0 && made.blocks > 0) made.block = (made.k + made.blocks - 1) / made.blocks;
  const bool is_taken = made.block >= 16 && (made.block & (made.block - 1)) == 0 &&
                        from.input(1).dtype() == node.input(0).dtype() && made.k > 0 && made.n > 0;
  return is_taken ? std::move(found) : std::nullopt;
}

// [n, blocks, block / 2], row by row, the first of two elements in the low half.
std::vector<uint8_t> rows_of_quantized(const Packed& w) {
  std::vector<uint8_t> out(static_cast<size_t>(w.n * w.blocks * w.block / 2), kMiddle * 0x11);
  for (int64_t column = 0; column < w.n; ++column)
    for (int64_t row = 0; row < w.k; ++row) {
      uint8_t& byte = out[static_cast<size_t>((column * w.blocks * w.block + row) / 2)];
      const uint8_t element = w.element(w.quantized_keeper, row, column, w.k);
      byte =
          static_cast<uint8_t>(row % 2 == 0 ? (byte & 0xf0) | element : (byte & 15) | element << 4);
    }
  return out;
}

// [n, ceil(blocks / 2)]; nothing where all are the middle.
std::vector<uint8_t> rows_of_zeros(const Packed& w) {
  std::vector<uint8_t> out(static_cast<size_t>(w.n * ((w.blocks + 1) / 2)), 0);
  bool is_needed = false;
  for (int64_t column = 0; column < w.n; ++column)
    for (int64_t row = 0; row < w.blocks; ++row) {
      const uint8_t zero = w.zero(row, column);
      is_needed = is_needed || zero != kMiddle;
      uint8_t& byte = out[static_cast<size_t>(column * ((w.blocks + 1) / 2) + row / 2)];
      byte = static_cast<uint8_t>(byte | zero << (row % 2 * 4));
    }
  return is_needed ? out : std::vector<uint8_t>();
}

// [n, blocks], of the bytes that one scale has.
Result<Value> rows_of_scales(EditView edit, const Packed& w, Value scales, std::string_view name) {
  if (w.is_transposed) return scales;
  const std::vector<int64_t> shape{w.n, w.blocks};
  TN_TRY(out, Tensor::zeros(edit.ctx(), scales.dtype(), shape));
  const size_t bytes = TN_DTYPE_BITS(scales.dtype()) / 8;
  const char* from = w.scale_keeper.data<char>();
  for (int64_t column = 0; column < w.n; ++column)
    for (int64_t row = 0; row < w.blocks; ++row)
      std::memcpy(out.data<char>() + static_cast<size_t>(column * w.blocks + row) * bytes,
                  from + static_cast<size_t>(row * w.n + column) * bytes, bytes);
  return edit.constant(out, name);
}

Status replace_product(EditView edit, Node node, const Packed& w) {
  Value scales = node.input(1).producer().input(1);
  std::string name(node.input(1).name());
  TN_TRY(quantized, edit.constant<uint8_t>(TN_U8, {w.n, w.blocks, w.block / 2},
                                           rows_of_quantized(w), name + "_n_bits"));
  TN_TRY(rows, rows_of_scales(edit, w, scales, name + "_n_bits_scales"));
  std::vector<Value> inputs{node.input(0), quantized, rows};
  const std::vector<uint8_t> zeros = rows_of_zeros(w);
  if (!zeros.empty()) {
    TN_TRY(packed,
           edit.constant<uint8_t>(TN_U8, {w.n, (w.blocks + 1) / 2}, zeros, name + "_n_bits_zeros"));
    inputs.push_back(packed);
  }
  TN_TRY(product, edit.add({.type = "MatMulNBits",
                            .inputs = inputs,
                            .attrs = {{"K", w.k}, {"N", w.n}, {"bits", 4}, {"block_size", w.block}},
                            .name = node.name(),
                            .domain = kDomain,
                            .scope = node.scope()}));
  Value y = product.output();
  if (node.is("Gemm") && node.input(2)) {
    TN_TRY(sum, edit.op("Add", {y, node.input(2)}));
    y = sum;
  }
  TN_CHECK(edit.replace(node.output(), y));
  return edit.erase(node);
}

}  // namespace

Status as_n_bits(tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  for (Node node : edit.graph().nodes()) {
    std::optional<Packed> weights = packed_weights(node);
    if (!weights) continue;
    Node from = node.input(1).producer();
    TN_CHECK(replace_product(edit, node, *weights).in(node.name()));
    Value left = from.output();
    if (left.consumer_count() == 0 && !left.is_output()) TN_CHECK(edit.erase(from));
  }
  return edit.commit();
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime's domain: a product with weights of 2, 4 or 8 bits that lie packed,
// [N, blocks, bytes], the first element of a byte in its low bits, with a scale and a zero point
// for each block of a row (onnxruntime, docs/ContribOperators.md).
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "com.microsoft";

struct Sizes {
  int64_t n, k, bits, block, blocks;
  int64_t elements_of_byte() const { return 8 / bits; }
  int64_t zero_bytes() const { return (blocks * bits + 7) / 8; }  // of a row
};

Result<Sizes> sizes_of(Node node) {
  Sizes s{node.attr_int("N"), node.attr_int("K"), node.attr_int("bits"),
          node.attr_int("block_size"), 0};
  TN_CHECK(expect_moderate("attributes N and K", {s.n, s.k}, 1));
  if (s.bits != 2 && s.bits != 4 && s.bits != 8)
    return invalid(cat("attribute bits: expected 2, 4 or 8, got ", s.bits));
  if (s.block < 16 || s.block > INT32_MAX || (s.block & (s.block - 1)) != 0)
    return invalid(cat("attribute block_size: expected a power of two in 16..2^30, got ", s.block));
  s.blocks = s.k / s.block + (s.k % s.block != 0);
  return s;
}

Status expect_elements(Node node, uint64_t i, std::string_view name, int64_t count) {
  if (!node.input(i)) return {};
  Type type = node.input(i).type();
  if (!type.is_static() || type.elements() == count) return {};
  return invalid(cat(name, ": expected ", count, " elements, got ", type.elements()));
}

Status product_shape(EditView edit, Node node) {
  TN_TRY(s, sizes_of(node));
  const int64_t packed_weight[] = {s.n, s.blocks, s.block * s.bits / 8};
  TN_CHECK(expect_elements(node, 1, "B", element_count(packed_weight)));
  TN_CHECK(expect_elements(node, 2, "scales", s.n * s.blocks));
  bool packed = node.input(3) && node.input(3).dtype() == TN_U8;
  TN_CHECK(expect_elements(node, 3, "zero_points", s.n * (packed ? s.zero_bytes() : s.blocks)));
  TN_CHECK(expect_elements(node, 5, "bias", s.n));
  if (node.input(4)) return unsupported("g_idx: columns out of order are not supported");
  Type a = node.input(0).type();
  if (!a.ranked) return set_output(edit, node, 0, a);
  Dims out = dims_of(a);
  if (out.empty()) return invalid("A: expected at least one axis, got a scalar");
  if (out.back().known() && !out.back().is(s.k))
    return invalid(cat("A: expected ", s.k, " columns, got ", *out.back().value));
  out.back() = Dim(s.n);
  return set_output(edit, node, 0, a.dtype, out);
}

// Bytes [rows, n] unpacked, [rows, n * elements of a byte].
Value unpacked(Builder& b, Value bytes, int64_t rows, const Sizes& s) {
  std::vector<Value> parts;
  Value mask =
      b.take(b.edit().constant<uint8_t>(TN_U8, {}, {static_cast<uint8_t>((1 << s.bits) - 1)}));
  Value column = b.reshape(bytes, {rows, -1, 1});
  for (int64_t i = 0; i < s.elements_of_byte(); ++i) {
    Value shift = b.take(b.edit().constant<uint8_t>(TN_U8, {}, {static_cast<uint8_t>(i * s.bits)}));
    Value moved = b.op("BitShift", {column, shift}, {{"direction", "RIGHT"}});
    parts.push_back(b.op("BitwiseAnd", {moved, mask}));
  }
  return b.reshape(b.op("Concat", parts, {{"axis", -1}}), {rows, -1});
}

Value first_columns(Builder& b, Value x, int64_t n) {
  return b.op("Slice", {x, b.ints({0}), b.ints({n}), b.ints({1})});
}

Result<std::vector<Value>> product_decompose(EditView edit, Node node) {
  TN_TRY(s, sizes_of(node));
  Builder b(edit);
  uint32_t real = node.input(2).dtype();
  Value quantized = b.cast(unpacked(b, node.input(1), s.n, s), real);
  Value zeros = node.input(3);
  if (zeros && zeros.dtype() == TN_U8)
    zeros = b.cast(first_columns(b, unpacked(b, zeros, s.n, s), s.blocks), real);
  zeros = zeros ? b.reshape(zeros, {s.n, s.blocks, 1})
                : b.number(static_cast<double>(1 << (s.bits - 1)), real);
  Value off = b.sub(b.reshape(quantized, {s.n, s.blocks, s.block}), zeros);
  Value scaled = b.mul(off, b.reshape(node.input(2), {s.n, s.blocks, 1}));
  Value rows = first_columns(b, b.reshape(scaled, {s.n, s.blocks * s.block}), s.k);
  Value y =
      b.op("MatMul", {node.input(0), b.transpose(b.cast(rows, node.input(0).dtype()), {1, 0})});
  if (node.input(5)) y = b.add(y, node.input(5));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

OpCost product_cost(Node node) {
  Type c = node.output().type();
  if (!c.is_static()) return {};
  return {2.0 * static_cast<double>(c.elements()) * static_cast<double>(node.attr_int("K")),
          node_bytes(node)};
}

Result<Node> product_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t bits = int64_t{4} << random.integer(0, 1), block = int64_t{16} << random.integer(0, 1);
  int64_t n = random.integer(1, 5), k = random.integer(1, 40), m = random.integer(1, 4);
  int64_t blocks = (k + block - 1) / block;
  TN_TRY(a, random.input(TN_F32, {2, m, k}));
  TN_TRY(w, random.input(TN_U8, {n, blocks, block * bits / 8}));
  std::vector<float> numbers(static_cast<size_t>(n * blocks));
  for (float& number : numbers)
    number = 0.01f * static_cast<float>(random.integer(1, 9));
  TN_TRY(scales, edit.constant<float>(TN_F32, {n, blocks}, numbers));
  std::vector<Value> inputs{a, w, scales};
  if (random.coin()) {
    TN_TRY(zeros, random.input(TN_U8, {n, (blocks * bits + 7) / 8}));
    inputs.push_back(zeros);
  }
  return edit.add({.type = "MatMulNBits",
                   .inputs = inputs,
                   .attrs = {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}},
                   .domain = kDomain});
}

constexpr tn_op kProduct =
    op_row({.type = "MatMulNBits",
            .domain = kDomain,
            .attributes = R"([{"name": "K", "type": "int"},
                              {"name": "N", "type": "int"},
                              {"name": "accuracy_level", "type": "int", "default": 0},
                              {"name": "bits", "type": "int", "default": 4},
                              {"name": "block_size", "type": "int"},
                              {"name": "weight_prepacked", "type": "int", "default": 0}])",
            .shape = shape<product_shape,
                           "a: T, b: u8, scales: U, zero_points: any?, g_idx: i32?, bias: T? ; "
                           "T = float, U = float">,
            .decompose = decompose<product_decompose>,
            .cost = cost<product_cost>,
            .sample = sample<product_sample>});

}  // namespace

TENON_OPS(n_bits_product, &kProduct)

}  // namespace tenon::ops

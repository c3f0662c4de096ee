// SPDX-License-Identifier: Apache-2.0
// MatMulInteger and ConvInteger: exact products of 8-bit integers less their zero points.
#include <algorithm>

#include "tenon/sdk/alike.hpp"

#include "cells.hpp"
#include "convolve.hpp"
#include "cost.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// A zero point: absent, one number, or one per row or column.
int64_t zero_at(const Call& call, uint64_t i, int64_t index) {
  if (!call.has(i)) return 0;
  bool one = element_count(call.in(i)) == 1;
  return load_integer(call.data<char>(i), call.dtype(i), one ? 0 : index);
}

// All elements less their zero points.
std::vector<int64_t> shifted(
    const Call& call, uint64_t i, uint64_t zero, int64_t inner, int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(element_count(call.in(i))));
  for (size_t k = 0; k < out.size(); ++k) {
    auto at = static_cast<int64_t>(k);
    out[k] = load_integer(call.data<char>(i), call.dtype(i), at) -
             zero_at(call, zero, at / inner % count);
  }
  return out;
}

Status expect_zeros(Node node, uint64_t i, const Dim& count) {
  Type zero = node.input(i).type();
  if (!node.input(i) || !zero.is_static() || zero.elements() == 1 || !count.known()) return {};
  if (count.is(zero.elements())) return {};
  return invalid(
      cat("input ", i, ": expected 1 or ", *count.value, " zero points, got ", zero.elements()));
}

Status matmul_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(1).type();
  if (!a.ranked || !b.ranked) return set_output(edit, node, 0, unranked(TN_I32));
  TN_TRY(out, product_dims(dims_of(a), dims_of(b)));
  TN_CHECK(expect_zeros(node, 2, a.rank() > 1 ? dims_of(a)[a.rank() - 2] : Dim(1)));
  TN_CHECK(expect_zeros(node, 3, b.rank() > 1 ? dims_of(b).back() : Dim(1)));
  return set_output(edit, node, 0, TN_I32, out);
}

// A vector is a row on the left and a column on the right, whose axis the result has not.
Status matmul_ref(const Call& call) {
  std::vector<int64_t> a = to_vector(call.shape(0)), b = to_vector(call.shape(1));
  const bool is_row = a.size() == 1, is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), 1);
  if (is_column) b.push_back(1);
  if (a.empty() || b.empty() || a.back() != b[b.size() - 2])
    return invalid("expected matrices whose inner dimensions agree");
  int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  size_t rank = std::max(a.size(), b.size()) - 2;
  std::vector<int64_t> out, from_a(rank, 0), from_b(rank, 0);
  std::vector<int64_t> a_strides = dense_strides(a), b_strides = dense_strides(b);
  for (size_t i = 0; i < rank; ++i) {
    bool has_a = i + a.size() >= rank + 2, has_b = i + b.size() >= rank + 2;
    size_t at_a = i + a.size() - rank - 2, at_b = i + b.size() - rank - 2;
    int64_t left = has_a ? a[at_a] : 1, right = has_b ? b[at_b] : 1;
    if (left != right && left != 1 && right != 1) return invalid("batches do not broadcast");
    if (left != 1) from_a[i] = a_strides[at_a];
    if (right != 1) from_b[i] = b_strides[at_b];
    out.push_back(left == 1 ? right : left);
  }
  std::vector<int64_t> batch = out;
  if (!is_row) out.push_back(m);
  if (!is_column) out.push_back(n);
  TN_TRY(result, call.out(0, TN_I32, out));
  std::vector<int64_t> left = shifted(call, 0, 2, k, m), right = shifted(call, 1, 3, 1, n);
  Odometer at(batch);
  auto* y = data_of<int32_t>(result);
  for (int64_t t = 0, count = element_count(batch); t < count; ++t, at.next()) {
    const int64_t* x = left.data() + at.dot(from_a);
    const int64_t* w = right.data() + at.dot(from_b);
    parallel_for(call.ctx(), static_cast<uint64_t>(m), 4, [&](uint64_t begin, uint64_t end) {
      std::vector<int64_t> row(static_cast<size_t>(n));
      for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
        std::fill(row.begin(), row.end(), 0);
        for (int64_t p = 0; p < k; ++p)
          for (int64_t j = 0; j < n; ++j)
            row[static_cast<size_t>(j)] += x[i * k + p] * w[p * n + j];
        for (int64_t j = 0; j < n; ++j)
          y[(t * m + i) * n + j] = static_cast<int32_t>(row[static_cast<size_t>(j)]);
      }
    });
  }
  return {};
}

Result<Node> matmul_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 5), k = random.integer(1, 5), n = random.integer(1, 5);
  TN_TRY(a, random.input(TN_U8, {2, m, k}));
  TN_TRY(b, random.input(TN_I8, {k, n}));
  TN_TRY(a_zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{2}));
  TN_TRY(b_zero, edit.constant<int8_t>(TN_I8, {}, std::vector<int8_t>{-1}));
  return edit.add({.type = "MatMulInteger", .inputs = {a, b, a_zero, b_zero}});
}

// In int32, without the zero points.
Value centred(Builder& b, Node node, uint64_t i) {
  Value x = b.cast(node.input(i), TN_I32), zero = node.input(i + 2);
  if (!zero) return x;
  Type type = b.ranked(zero, node.type());
  zero = b.cast(zero, TN_I32);
  if (type.rank() == 1) {  // one for each row of a, each column of b, each filter; or for all
    std::vector<int64_t> dims;
    if (type.dims[0] != 1 && node.is("MatMulInteger")) {
      dims = i == 1 ? std::vector<int64_t>{1, -1} : std::vector<int64_t>{-1, 1};
    } else if (type.dims[0] != 1) {
      dims.assign(b.ranked(x, node.type()).rank(), 1);
      if (!dims.empty()) dims[0] = -1;
    }
    zero = b.reshape(zero, dims);
  }
  return b.sub(x, zero);
}
Result<std::vector<Value>> integer_decompose(EditView edit, Node node) {
  Builder b(edit);
  bool matrix = node.is("MatMulInteger");
  std::vector<Attr> attrs;
  if (!matrix) attrs = attributes_of(node);
  Value left = centred(b, node, 0), right = centred(b, node, 1);
  Value y = b.op(matrix ? "MatMul" : "Conv", {left, right}, attrs);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Status conv_integer_shape(EditView edit, Node node) {
  Type w = node.input(1).type();
  if (w.ranked && w.rank() > 0) TN_CHECK(expect_zeros(node, 3, dims_of(w)[0]));
  return conv_shape(edit, node, 1, TN_I32);
}
Status conv_integer_ref(const Call& call) {
  TN_TRY(sizes, conv_sizes(call.node(), call.shape(0), call.shape(1)));
  TN_TRY(out, call.out(0, TN_I32, conv_out_shape(sizes)));
  int64_t filters = call.shape(1)[0];
  std::vector<int64_t> x = shifted(call, 0, 2, 1, 1);
  std::vector<int64_t> w =
      shifted(call, 1, 3, element_count(call.in(1)) / std::max<int64_t>(filters, 1), filters);
  auto* y = data_of<int32_t>(out);
  convolve<int64_t>(
      call.ctx(), sizes, [&x](int64_t i) { return x[static_cast<size_t>(i)]; },
      [&w](int64_t i, int64_t) { return w[static_cast<size_t>(i)]; },
      [y](int64_t i, int64_t, int64_t sum) { y[i] = static_cast<int32_t>(sum); });
  return {};
}
Result<Node> conv_integer_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t c = random.integer(1, 3);
  TN_TRY(x, random.input(TN_U8, {1, c, random.integer(4, 6), random.integer(4, 6)}));
  TN_TRY(w, random.input(TN_I8, {random.integer(1, 3), c, 3, 2}));
  TN_TRY(zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{2}));
  std::vector<int64_t> pads{1, 1, 0, 1};
  return edit.add({.type = "ConvInteger", .inputs = {x, w, zero}, .attrs = {{"pads", pads}}});
}

OpCost matmul_cost(Node node) {
  Type a = node.input(0).type();
  double k = a.is_static() && !a.dims.empty() ? static_cast<double>(a.dims.back()) : 0;
  return {2 * k * output_elements(node), node_bytes(node)};
}

constexpr tn_op kMatMulInteger = op_row(
    {.type = "MatMulInteger",
     .since = 10,
     .shape = shape<matmul_shape, "a: T, b: U, a_zero: T?, b_zero: U? ; T = i8|u8, U = i8|u8">,
     .decompose = decompose<integer_decompose>,
     .cost = cost<matmul_cost>,
     .ref = ref<matmul_ref>,
     .sample = sample<matmul_sample>});
constexpr tn_op kConvInteger = op_row(
    {.type = "ConvInteger",
     .since = 10,
     .attributes = "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                    {"name": "kernel_shape", "type": "ints"}])",
     .quant = "integer",
     .shape =
         shape<conv_integer_shape,
               "x: T[n (g c) s..], w: U[(g o) c s'..], x_zero: T[one]?, w_zero: U? ; g = group, "
               "T = i8|u8, U = i8|u8">,
     .decompose = decompose<integer_decompose>,
     .cost = cost<[](Node node) { return OpCost{conv_flops(node, 1), node_bytes(node)}; }>,
     .ref = ref<conv_integer_ref>,
     .sample = sample<conv_integer_sample>});

}  // namespace

TENON_OPS(integer_products, &kMatMulInteger, &kConvInteger)

}  // namespace tenon::ops

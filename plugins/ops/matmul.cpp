// SPDX-License-Identifier: Apache-2.0
// MatMul (NumPy's matmul) and Gemm.
#include <algorithm>

#include "tenon/wrapping.hpp"

#include "batching_rules.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "example_norms.hpp"
#include "matrices.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// c[m, n] += a[m, k] * b[k, n] in Acc, with strides for the transposed forms.
template <class T, class Acc>
void multiply(const T* a,
              int64_t a_row,
              int64_t a_col,
              const T* b,
              int64_t b_row,
              int64_t b_col,
              Acc* c,
              int64_t m,
              int64_t n,
              int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      Acc left = static_cast<Acc>(a[i * a_row + p * a_col]);
      const T* right = b + p * b_row;
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] =
            wrapping_add(c[i * n + j], wrapping_mul(left, static_cast<Acc>(right[j * b_col])));
    }
  }
}

// A 1-D operand is a row (left) or a column (right); batch dimensions broadcast.
struct MatMulShape {
  std::vector<int64_t> out;
  std::vector<int64_t> batch, a_batch, b_batch;  // equal ranks, 1 where broadcast
  int64_t m = 1, n = 1, k = 1;
};

MatMulShape matmul_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  MatMulShape s;
  bool a_vector = a.size() == 1, b_vector = b.size() == 1;
  s.k = a.back();
  s.m = a_vector ? 1 : a[a.size() - 2];
  s.n = b_vector ? 1 : b.back();
  size_t a_rank = a_vector ? 0 : a.size() - 2, b_rank = b_vector ? 0 : b.size() - 2;
  size_t rank = std::max(a_rank, b_rank);
  for (size_t i = 0; i < rank; ++i) {
    s.a_batch.push_back(i + a_rank < rank ? 1 : a[i + a_rank - rank]);
    s.b_batch.push_back(i + b_rank < rank ? 1 : b[i + b_rank - rank]);
    s.batch.push_back(s.a_batch[i] == 1 ? s.b_batch[i] : s.a_batch[i]);
  }
  s.out = s.batch;
  if (!a_vector) s.out.push_back(s.m);
  if (!b_vector) s.out.push_back(s.n);
  return s;
}

Status matmul_types(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(1).type();
  if (!a.ranked || !b.ranked) return set_output(edit, node, 0, unranked(a.dtype));
  TN_TRY(out, product_dims(dims_of(a), dims_of(b)));
  return set_output(edit, node, 0, a.dtype, out);
}

// Which matrix of a batched operand belongs to matrix `index` of the result.
int64_t batch_index(int64_t index,
                    const std::vector<int64_t>& batch,
                    const std::vector<int64_t>& own) {
  int64_t at = 0, stride = 1;
  for (size_t i = batch.size(); i-- > 0;) {
    int64_t coordinate = index % batch[i];
    index /= batch[i];
    if (own[i] != 1) at += coordinate * stride;
    stride *= own[i];
  }
  return at;
}

Status matmul_ref(const Call& call) {
  MatMulShape s = matmul_shape(call.shape(0), call.shape(1));
  TN_TRY(out, call.out(0, call.dtype(0), s.out));
  int64_t count = element_count(s.batch);
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    const T* a = call.data<T>(0);
    const T* b = call.data<T>(1);
    T* c = data_of<T>(out);
    // Rows of all matrices are independent.
    parallel_for(call.ctx(), static_cast<uint64_t>(count * s.m), 4, [&](uint64_t lo, uint64_t hi) {
      std::vector<Wide<T>> row(static_cast<size_t>(s.n));
      for (auto r = static_cast<int64_t>(lo); r < static_cast<int64_t>(hi); ++r) {
        int64_t matrix = r / s.m, i = r % s.m;
        std::fill(row.begin(), row.end(), Wide<T>(0));
        multiply(a + (batch_index(matrix, s.batch, s.a_batch) * s.m + i) * s.k, s.k, 1,
                 b + batch_index(matrix, s.batch, s.b_batch) * s.k * s.n, s.n, 1, row.data(), 1,
                 s.n, s.k);
        std::transform(row.begin(), row.end(), c + r * s.n,
                       [](Wide<T> sum) { return static_cast<T>(sum); });
      }
    });
    return {};
  });
}

Result<Node> matmul_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 6), n = random.integer(1, 6), k = random.integer(1, 6);
  std::vector<int64_t> batch = random.shape(0, 2, 3);
  std::vector<int64_t> a = batch, b = random.broadcastable(batch);
  a.insert(a.end(), {m, k});
  b.insert(b.end(), {k, n});
  TN_TRY(left, random.input(TN_F32, a));
  TN_TRY(right, random.input(TN_F32, b));
  return edit.add({.type = "MatMul", .inputs = {left, right}});
}

OpCost matmul_cost(Node node) {
  Type a = node.input(0).type(), b = node.input(1).type(), c = node.output().type();
  if (!a.is_static() || !b.is_static() || !c.is_static() || a.dims.empty()) return {};
  return {2.0 * static_cast<double>(c.elements()) * static_cast<double>(a.dims.back()),
          static_cast<double>(bytes_of(a.dtype, a.elements()) + bytes_of(b.dtype, b.elements()) +
                              bytes_of(c.dtype, c.elements()))};
}

Status matmul_vjp(Gradients& g) {
  Type a = g.ranked(g.in(0), "MatMul"), b = g.ranked(g.in(1), "MatMul");
  Value dy = g.cotangent(), left = g.in(0), right = g.in(1);
  if (a.dims.empty() || b.dims.empty()) return {};
  // A vector is a matrix with an axis of one.
  if (b.rank() == 1) {
    right = g.op("Unsqueeze", {right, g.ints({1})});
    dy = g.op("Unsqueeze", {dy, g.ints({-1})});
  }
  if (a.rank() == 1) {
    left = g.op("Unsqueeze", {left, g.ints({0})});
    dy = g.op("Unsqueeze", {dy, g.ints({-2})});
  }
  size_t m = std::max<size_t>(2, a.rank()), n = std::max<size_t>(2, b.rank());
  if (g.wanted(0)) g.set(0, g.op("MatMul", {dy, swapped(g, right, n)}));
  if (!g.wanted(1)) return {};
  // Nothing divides into rows of no elements.
  if (n == 2 && m > 2 && a.dims.back() > 0 && b.dims.back() > 0) {
    // One product over all rows instead of one for each matrix of the batch, and a sum.
    left = g.reshape(left, {-1, a.dims.back()});
    dy = g.reshape(dy, {-1, b.rank() == 1 ? 1 : b.dims.back()});
    m = 2;
  }
  Value gradient = g.op("MatMul", {swapped(g, left, m), dy});
  if (b.rank() == 1) gradient = g.op("Squeeze", {gradient, g.ints({-1})});
  g.set(1, gradient);
  return {};
}

Status gemm_vjp(Gradients& g) {
  int64_t ta = g.of().attr_int("transA"), tb = g.of().attr_int("transB");
  Value a = g.in(0), b = g.in(1), dy = g.cotangent();
  auto product = [&](Value left, int64_t t_left, Value right, int64_t t_right) {
    return g.op(
        "Gemm", {left, right},
        {{"transA", t_left}, {"transB", t_right}, {"alpha", g.of().attr_float("alpha", 1)}});
  };
  if (g.wanted(0)) g.set(0, ta ? product(b, tb, dy, 1) : product(dy, 0, b, 1 - tb));
  if (g.wanted(1)) g.set(1, tb ? product(dy, 1, a, ta) : product(a, 1 - ta, dy, 0));
  if (g.wanted(2)) g.set(2, g.mul(dy, g.number(g.of().attr_float("beta", 1), dy.dtype())));
  return {};
}

// Vectors as matrices with an axis of one; matrices alone are batched by the axes column.
Status matmul_batch(Batching& b) {
  size_t left = b.ranked(b.of().input(0), "MatMul").rank();
  size_t right = b.ranked(b.of().input(1), "MatMul").rank();
  if (left != 1 && right != 1) return unsupported("by axes");
  size_t longest = std::max({left, right, size_t{2}});
  auto operand = [&](uint64_t i, size_t rank, int64_t axis) {
    Value x = rank == 1 ? b.op("Unsqueeze", {b.in(i), b.ints({axis})}) : b.in(i);
    for (size_t n = std::max<size_t>(rank, 2); b.batched(i) && n < longest; ++n)
      x = b.op("Unsqueeze", {x, b.ints({1})});
    return x;
  };
  Value y = b.op("MatMul", {operand(0, left, -2), operand(1, right, -1)});
  if (right == 1) y = b.op("Squeeze", {y, b.ints({-1})});
  if (left == 1) y = b.op("Squeeze", {y, b.ints({right == 1 ? -1 : -2})});
  b.set(0, y);
  return {};
}

// As products of matrices that broadcast.
Status gemm_batch(Batching& b) {
  uint32_t dtype = b.in(0).dtype();
  auto operand = [&](uint64_t i, const char* flag) {
    if (b.of().attr_int(flag) == 0) return b.in(i);
    return swapped(b, b.in(i), b.batched(i) ? 3 : 2);
  };
  Value y = b.op("MatMul", {operand(0, "transA"), operand(1, "transB")});
  double alpha = b.of().attr_float("alpha", 1), beta = b.of().attr_float("beta", 1);
  if (alpha != 1) y = b.mul(y, b.number(alpha, dtype));
  if (Value c = b.in(2)) {
    size_t rank = b.ranked(b.of().input(2), "Gemm").rank();
    for (; b.batched(2) && rank < 2; ++rank)
      c = b.op("Unsqueeze", {c, b.ints({1})});
    y = b.add(y, beta == 1 ? c : b.mul(c, b.number(beta, dtype)));
  }
  b.set(0, y, b.batched(0) || b.batched(1) || b.batched(2));
  return {};
}

constexpr tn_op kMatMul = op_row({.type = "MatMul",
                                  .since = 13,
                                  .axes = "B* m k, B* k n -> B* m n",
                                  .quant = "compute act=0 weight=1 axis=1",
                                  .shape = shape<matmul_types, "a: T, b: T">,
                                  .cost = cost<matmul_cost>,
                                  .ref = ref<matmul_ref>,
                                  .sample = sample<matmul_sample>,
                                  .vjp = vjp<matmul_vjp>,
                                  .vjp_inputs = 3,
                                  .vjp_outputs = 0,
                                  .batch = batch<matmul_batch>,
                                  .cast = "cpu=low cuda=low",
                                  .example_norms = example_norms<matmul_example_norms>});

struct GemmForm {
  bool trans_a, trans_b;
  int64_t m, n, k;
};

GemmForm gemm_form(Node node, std::span<const int64_t> a, std::span<const int64_t> b) {
  bool trans_a = node.attr_int("transA") != 0, trans_b = node.attr_int("transB") != 0;
  return {trans_a, trans_b, a[trans_a ? 1 : 0], b[trans_b ? 0 : 1], a[trans_a ? 0 : 1]};
}

Status gemm_shape(EditView edit, Node node) {
  bool trans_a = node.attr_int("transA") != 0, trans_b = node.attr_int("transB") != 0;
  TN_CHECK(check_operands(node, cat("a: T[", trans_a ? "k m" : "m k", "], b: T[",
                                    trans_b ? "n k" : "k n", "], c: T?")));
  Type a = node.input(0).type(), b = node.input(1).type();
  Type out(a.dtype, {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN});
  out.symbols.resize(2);
  auto take = [&out](const Type& from, size_t axis, size_t to) {
    if (!from.ranked) return;
    out.dims[to] = from.dims[axis];
    if (!from.symbols.empty()) out.symbols[to] = from.symbols[axis];
  };
  take(a, trans_a ? 1 : 0, 0);
  take(b, trans_b ? 0 : 1, 1);
  TN_CHECK(expect_broadcast(node, 2, dims_of(out)));
  return edit.set_type(node.output(), out);
}

Status gemm_ref(const Call& call) {
  GemmForm form = gemm_form(call.node(), call.shape(0), call.shape(1));
  auto [trans_a, trans_b, m, n, k] = form;
  TN_TRY(out, call.out(0, call.dtype(0), {m, n}));
  double alpha = call.node().attr_float("alpha"), beta = call.node().attr_float("beta");
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    std::vector<Wide<T>> sum(static_cast<size_t>(m * n));
    multiply(call.data<T>(0), trans_a ? 1 : k, trans_a ? m : 1, call.data<T>(1), trans_b ? 1 : n,
             trans_b ? k : 1, sum.data(), m, n, k);
    // C broadcasts to [m, n] from the right.
    int64_t rows = 1, columns = 1;
    if (call.has(2)) {
      std::span<const int64_t> c = call.shape(2);
      if (!c.empty()) columns = c.back();
      if (c.size() > 1) rows = c[0];
    }
    for (int64_t i = 0; i < m * n; ++i) {
      double value = alpha * static_cast<double>(sum[static_cast<size_t>(i)]);
      if (call.has(2)) {
        int64_t at = (rows == 1 ? 0 : i / n) * columns + (columns == 1 ? 0 : i % n);
        value += beta * static_cast<double>(call.data<T>(2)[at]);
      }
      data_of<T>(out)[i] = static_cast<T>(value);
    }
    return {};
  });
}

Result<Node> gemm_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 6), n = random.integer(1, 6), k = random.integer(1, 6);
  bool trans_a = random.coin(), trans_b = random.coin();
  TN_TRY(a, random.input(TN_F32, trans_a ? std::vector{k, m} : std::vector{m, k}));
  TN_TRY(b, random.input(TN_F32, trans_b ? std::vector{n, k} : std::vector{k, n}));
  std::vector<Value> inputs{a, b};
  if (random.coin()) {
    TN_TRY(c, random.input(TN_F32, random.broadcastable({m, n})));
    inputs.push_back(c);
  }
  return edit.add({.type = "Gemm",
                   .inputs = inputs,
                   .attrs = {{"transA", trans_a ? 1 : 0},
                             {"transB", trans_b ? 1 : 0},
                             {"alpha", 0.5},
                             {"beta", 2.0}}});
}

OpCost gemm_cost(Node node) {
  Type a = node.input(0).type(), c = node.output().type();
  if (!a.is_static() || !c.is_static()) return {};
  int64_t k = a.dims[node.attr_int("transA") ? 0 : 1];
  return {2.0 * static_cast<double>(c.elements() * k),
          static_cast<double>(bytes_of(a.dtype, a.elements() + c.elements() + k * c.dims[1]))};
}

constexpr tn_op kGemm =
    op_row({.type = "Gemm",
            .since = 13,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.0},
                                   {"name": "beta", "type": "float", "default": 1.0},
                                   {"name": "transA", "type": "int", "default": 0},
                                   {"name": "transB", "type": "int", "default": 0}])",
            .quant = "compute act=0 weight=1 bias=2 axis=transB?0:1",
            .shape = shape<gemm_shape>,
            .cost = cost<gemm_cost>,
            .ref = ref<gemm_ref>,
            .sample = sample<gemm_sample>,
            .vjp = vjp<gemm_vjp>,
            .vjp_inputs = 3,
            .vjp_outputs = 0,
            .batch = batch<gemm_batch>,
            .cast = "cpu=low cuda=low",
            .coupling = "matrices a=0 b=1 c=2 transpose_a=transA transpose_b=transB",
            .example_norms = example_norms<gemm_example_norms>});

}  // namespace

TENON_OPS(matmul, &kMatMul, &kGemm)

}  // namespace tenon::ops

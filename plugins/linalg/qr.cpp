// SPDX-License-Identifier: Apache-2.0
// tenon:Qr(x): x [.., m, n] = q r with orthonormal columns in q [.., m, k] and an upper triangle r
// [.., k, n], by Householder's reflections; k is the lesser of m and n, with complete it is m.
#include <Eigen/QR>
#include <algorithm>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

bool is_complete(Node node) {
  return node.attr_int("complete") != 0;
}

Status qr_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_types(edit, node, {{}, {}});
  Axis rows = axis_from_end(x, 2), columns = axis_from_end(x, 1);
  Axis inner = is_complete(node) ? rows : lesser_axis(x);
  return set_types(edit, node, {{rows, inner}, {inner, columns}});
}

Status qr_ref(const Call& call) {
  TN_TRY(x, read(call, 0));
  int64_t inner = is_complete(call.node()) ? x.rows : std::min(x.rows, x.columns);
  Stack q(x.batch, x.rows, inner), r(x.batch, inner, x.columns);
  TN_CHECK(for_each(call, x.count(), [&, &x = x](int64_t i) -> Status {
    if (x.columns == 0) q[i].setIdentity();
    if (q.rows == 0 || x.columns == 0) return {};
    TN_TRY(factor, factor_of(x[i]));
    Eigen::HouseholderQR<Matrix> found(x[i] / (factor * factor));
    q[i] = Matrix(found.householderQ() * Matrix::Identity(x.rows, inner));
    r[i] = found.matrixQR().topRows(inner).triangularView<Eigen::Upper>();
    r[i] *= factor * factor;
    return {};
  }));
  TN_CHECK(write(call, 0, q, {x.rows, inner}));
  return write(call, 1, r, {inner, x.columns});
}

// Of m >= n: x' = (q' + q copy(M)) r^-T with M = r r'^T - q'^T q, copy: the lower triangle,
// mirrored (Walter and Lehmann 2010, "Algorithmic differentiation of linear algebra functions",
// section 3). q': falsy for zeros.
Value tall(Gradients& g, Value q, Value r, Value dq, Value dr, int64_t n) {
  Value m;
  if (dr) m = product(g, r, transposed(g, dr));
  if (dq) {
    Value part = product(g, transposed(g, dq), q);
    m = m ? g.sub(m, part) : g.neg(part);
  }
  Value lower = g.mul(m, pattern(g, q, n, [](int64_t i, int64_t k) { return i >= k ? 1.0 : 0; }));
  Value below = g.mul(m, pattern(g, q, n, [](int64_t i, int64_t k) { return i > k ? 1.0 : 0; }));
  Value sum = product(g, q, g.add(lower, transposed(g, below)));
  if (dq) sum = g.add(sum, dq);
  return transposed(g, solved(g, r, transposed(g, sum)));
}

Value columns_of(Gradients& g, Value x, int64_t first, int64_t last) {
  return g.op("Slice", {x, g.ints({first}), g.ints({last}), g.ints({-1})});
}

// A wide x = [a | y] has r = [u | v] with v = q^T y: y' = q v', and q gets y v'^T beside its own
// (Roberts and Roberts 2020, "QR and LQ decomposition matrix backpropagation algorithms").
Status qr_vjp(Gradients& g) {
  TN_TRY(rows, known_size(g.in(0), 2, "Qr"));
  TN_TRY(columns, known_size(g.in(0), 1, "Qr"));
  if (is_complete(g.of()) && rows > columns)
    return unsupported(
        "Qr: the complete form is not defined well enough for a gradient; use the reduced one");
  Value q = g.out(0), r = g.out(1), dq = g.cotangent(0), dr = g.cotangent(1);
  if (rows >= columns) {
    g.set(0, tall(g, q, r, dq, dr, columns));
    return {};
  }
  Value du, dv;
  if (dr) {
    du = columns_of(g, dr, 0, rows), dv = columns_of(g, dr, rows, columns);
    Value part = product(g, columns_of(g, g.in(0), rows, columns), transposed(g, dv));
    dq = dq ? g.add(dq, part) : part;
  }
  Value left = tall(g, q, columns_of(g, r, 0, rows), dq, du, rows);
  Value right = dv ? product(g, q, dv) : g.zeros_like(columns_of(g, g.in(0), rows, columns));
  g.set(0, g.op("Concat", {left, right}, {{"axis", -1}}));
  return {};
}

Result<Node> qr_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t m = random.integer(1, 4), n = random.integer(1, 4);
  TN_TRY(x, random.input("x", {random.integer(1, 2), m, n}));
  Builder b(edit);
  std::vector<float> numbers;
  for (int64_t i = 0; i < m * n; ++i)
    numbers.push_back(i / n == i % n ? 12 : 0);
  Value full = b.add(x, b.take(edit.constant<float>(TN_F32, {m, n}, numbers)));
  Node made = b.node({.type = "Qr",
                      .inputs = {full},
                      .attrs = {{"complete", m <= n ? random.integer(0, 1) : int64_t{0}}},
                      .n_outputs = 2,
                      .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost qr_cost(Node node) {
  return cubic_cost(node, 4);
}

constexpr tn_op kQr =
    op_row({.type = "Qr",
            .domain = "tenon",
            .attributes = R"([{"name": "complete", "type": "int", "default": 0}])",
            .shape = shape<qr_shape, "x: T[b.. m n] ; T = f32|f64">,
            .cost = cost<qr_cost>,
            .ref = ref<qr_ref>,
            .sample = sample<qr_sample>,
            .vjp = vjp<qr_vjp>,
            .vjp_inputs = 1,
            .vjp_outputs = 3,
            .batch = batch<batch_as_matrices>,
            .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(qr, &kQr)

}  // namespace tenon::linalg

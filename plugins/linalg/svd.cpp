// SPDX-License-Identifier: Apache-2.0
// tenon:Svd(x): x [.., m, n] = u diag(s) v with orthonormal columns in u [.., m, k] and rows in v
// [.., k, n], s [.., k] falling from the largest; k is the lesser of m and n, with full u and v are
// square. The entry of a column of u that is largest in size is positive.
#include <Eigen/SVD>
#include <algorithm>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

bool is_full(Node node) {
  return node.attr_int("full") != 0;
}

Status svd_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_types(edit, node, {{}, {}, {}});
  Axis rows = axis_from_end(x, 2), columns = axis_from_end(x, 1), inner = lesser_axis(x);
  if (is_full(node)) return set_types(edit, node, {{rows, rows}, {inner}, {columns, columns}});
  return set_types(edit, node, {{rows, inner}, {inner}, {inner, columns}});
}

Status svd_ref(const Call& call) {
  TN_TRY(x, read(call, 0));
  bool full = is_full(call.node());
  int64_t inner = std::min(x.rows, x.columns);
  Stack u(x.batch, x.rows, full ? x.rows : inner), s(x.batch, 1, inner),
      v(x.batch, full ? x.columns : inner, x.columns);
  unsigned parts =
      full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  TN_CHECK(for_each(call, x.count(), [&, &x = x](int64_t i) -> Status {
    if (inner == 0) {
      u[i].setIdentity(), v[i].setIdentity();
      return {};
    }
    TN_TRY(factor, factor_of(x[i]));
    // Columns of the transposed matrix are rows here.
    Eigen::BDCSVD<Eigen::MatrixXd> found(x[i].transpose() / (factor * factor), parts);
    if (found.info() != Eigen::Success) return invalid("the singular values did not converge");
    u[i] = found.matrixV(), v[i] = found.matrixU().transpose();
    s[i] = factor * factor * found.singularValues().transpose();
    for (Eigen::Index k = 0; k < inner; ++k) {
      Eigen::Index largest = 0;
      u[i].col(k).cwiseAbs().maxCoeff(&largest);
      if (u[i](largest, k) < 0) u[i].col(k) *= -1, v[i].row(k) *= -1;
    }
    return {};
  }));
  TN_CHECK(write(call, 0, u, {u.rows, u.columns}));
  TN_CHECK(write(call, 1, s, {inner}));
  return write(call, 2, v, {v.rows, v.columns});
}

// With v in columns, a = u^T u' - u'^T u, b = v^T v' - v'^T v, and the differences s-[i, k] =
// s[k] - s[i] and sums s+ of the values:
//   x' = u (diag(s') + ((a + b) / s- + (a - b) / s+) / 2) v^T
//        + (1 - u u^T) u' S^-1 v^T + u S^-1 v'^T (1 - v v^T)
// (Townsend 2016, "Differentiating the singular value decomposition", whose F = 1 / (s- s+) is
// taken apart here). Equal values leave open how their u and v turn together: a + b counts nothing
// there, and a - b does. What vanishing values leave open counts nothing.
class SvdGradient {
 public:
  SvdGradient(Gradients& g, int64_t n)
      : g_(g), n_(n), u_(g.out(0)), v_(g.out(2)), s_(g.op("Unsqueeze", {g.out(1), g.ints({-2})})) {}

  Value of(Value du, Value ds, Value dv, bool is_tall, bool is_wide) {
    Value left, right, inner;  // u^T u', v^T v', and what stands between u and v^T
    if (du) left = product(g_, transposed(g_, u_), du);
    if (dv) right = product(g_, v_, transposed(g_, dv));
    if (ds) inner = diagonal_matrix(g_, ds, n_);
    if (du || dv) inner = plus(inner, rotated(skew(left), skew(right)));
    Value sum = product(g_, product(g_, u_, inner), v_);
    if (du && is_tall) {
      Value rest = g_.sub(du, product(g_, u_, left));
      sum = g_.add(sum, product(g_, g_.mul(rest, inverse(s_)), v_));
    }
    if (dv && is_wide) {
      Value rest = g_.sub(dv, product(g_, transposed(g_, right), v_));
      sum = g_.add(sum, product(g_, u_, g_.mul(transposed(g_, inverse(s_)), rest)));
    }
    return sum;
  }

 private:
  Value plus(Value x, Value y) { return x && y ? g_.add(x, y) : x ? x : y; }
  Value skew(Value x) { return x ? g_.sub(x, transposed(g_, x)) : x; }
  Value inverse(Value x) { return reciprocal_or_zero(g_, x, rounding_of(g_, g_.out(1), n_)); }
  Value rotated(Value a, Value b) {
    Value column = transposed(g_, s_);
    Value together = g_.mul(plus(a, b), inverse(g_.sub(s_, column)));
    Value apart = g_.mul(plus(a, b ? g_.neg(b) : b), inverse(g_.add(s_, column)));
    return g_.mul(g_.add(together, apart), g_.number(0.5, s_.dtype()));
  }
  Gradients& g_;
  int64_t n_;
  Value u_, v_, s_;  // s: [.., 1, k]
};

Status svd_vjp(Gradients& g) {
  TN_TRY(rows, known_size(g.in(0), 2, "Svd"));
  TN_TRY(columns, known_size(g.in(0), 1, "Svd"));
  Value du = g.cotangent(0), ds = g.cotangent(1), dv = g.cotangent(2);
  if (is_full(g.of()) && rows != columns && (du || dv))
    return unsupported(
        "Svd: the full form is not defined well enough for a gradient; use full = 0");
  if (!is_full(g.of()) || rows == columns) {
    g.set(0,
          SvdGradient(g, std::min(rows, columns)).of(du, ds, dv, rows > columns, columns > rows));
    return {};
  }
  // Only the values: by the vectors that belong to them.
  int64_t n = std::min(rows, columns);
  Value u = g.op("Slice", {g.out(0), g.ints({0}), g.ints({n}), g.ints({-1})});
  Value v = g.op("Slice", {g.out(2), g.ints({0}), g.ints({n}), g.ints({-2})});
  g.set(0, product(g, product(g, u, diagonal_matrix(g, ds, n)), v));
  return {};
}

Result<Node> svd_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t m = random.integer(1, 4), n = random.integer(1, 4);
  TN_TRY(x, random.input("x", {random.integer(1, 2), m, n}));
  Builder b(edit);
  std::vector<float> numbers;  // singular values that no small change brings together
  for (int64_t i = 0; i < m * n; ++i)
    numbers.push_back(i / n == i % n ? 15 * static_cast<float>(i % n + 1) : 0);
  Value apart = b.add(x, b.take(edit.constant<float>(TN_F32, {m, n}, numbers)));
  Node made = b.node({.type = "Svd",
                      .inputs = {apart},
                      .attrs = {{"full", m == n ? random.integer(0, 1) : int64_t{0}}},
                      .n_outputs = 3,
                      .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost svd_cost(Node node) {
  return cubic_cost(node, 20);
}

constexpr tn_op kSvd = op_row({.type = "Svd",
                               .domain = "tenon",
                               .attributes = R"([{"name": "full", "type": "int", "default": 0}])",
                               .shape = shape<svd_shape, "x: T[b.. m n] ; T = f32|f64">,
                               .cost = cost<svd_cost>,
                               .ref = ref<svd_ref>,
                               .sample = sample<svd_sample>,
                               .vjp = vjp<svd_vjp>,
                               .vjp_inputs = 1,
                               .vjp_outputs = 7,
                               .batch = batch<batch_as_matrices>,
                               .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(svd, &kSvd)

}  // namespace tenon::linalg

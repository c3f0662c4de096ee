// SPDX-License-Identifier: Apache-2.0
// tenon:Eigh(x): eigenvalues in rising order [.., m] and eigenvectors as columns [.., m, m] of the
// symmetric part of x. The entry of a vector that is largest in size is positive.
#include <Eigen/Eigenvalues>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

Status eigh_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_types(edit, node, {{}, {}});
  Axis m = axis_from_end(x, 1);
  return set_types(edit, node, {{m}, {m, m}});
}

Status eigh_ref(const Call& call) {
  TN_TRY(x, read(call, 0));
  Stack values(x.batch, 1, x.rows), vectors(x.batch, x.rows, x.rows);
  TN_CHECK(for_each(call, x.rows ? x.count() : 0, [&, &x = x](int64_t i) -> Status {
    TN_TRY(factor, factor_of(x[i]));
    const double down = 1 / (factor * factor);
    Eigen::SelfAdjointEigenSolver<Matrix> found(0.5 * (down * x[i] + down * x[i].transpose()));
    if (found.info() != Eigen::Success) return invalid("the eigenvalues did not converge");
    values[i] = factor * factor * found.eigenvalues().transpose();
    vectors[i] = found.eigenvectors();
    for (Eigen::Index k = 0; k < x.rows; ++k) {
      Eigen::Index largest = 0;
      vectors[i].col(k).cwiseAbs().maxCoeff(&largest);
      if (vectors[i](largest, k) < 0) vectors[i].col(k) *= -1;
    }
    return {};
  }));
  TN_CHECK(write(call, 0, values, {x.rows}));
  return write(call, 1, vectors, {x.rows, x.rows});
}

// x' = V (diag(w') + F * (V' dV)) V', F[i, k] = 1 / (w[k] - w[i]) (Giles 2008, "Collected matrix
// derivative results", section 3.1). Eigenvalues that are equal but for roundings have no vectors
// of their own: their part of F is 0, which is right for whatever does not depend on the choice
// among them.
Status eigh_vjp(Gradients& g) {
  TN_TRY(n, known_size(g.in(0), 1, "Eigh"));
  Value w = g.out(0), v = g.out(1), inner;
  if (g.cotangent(0)) inner = diagonal_matrix(g, g.cotangent(0), n);
  if (g.cotangent(1)) {
    Value gaps = g.sub(g.op("Unsqueeze", {w, g.ints({-2})}), g.op("Unsqueeze", {w, g.ints({-1})}));
    Value inverse = reciprocal_or_zero(g, gaps, rounding_of(g, w, n));
    Value rotation = g.mul(inverse, product(g, transposed(g, v), g.cotangent(1)));
    inner = inner ? g.add(inner, rotation) : rotation;
  }
  g.set(0, symmetric(g, product(g, product(g, v, inner), transposed(g, v))));
  return {};
}

Result<Node> eigh_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t n = random.integer(1, 4);
  TN_TRY(x, random.input("x", {random.integer(1, 2), n, n}));
  Builder b(edit);
  // Eigenvalues that no small change brings together.
  Value apart = b.add(x, pattern(b, x, n, [](int64_t i, int64_t k) {
                        return i == k ? 15.0 * static_cast<double>(i) : 0;
                      }));
  Node made = b.node({.type = "Eigh", .inputs = {apart}, .n_outputs = 2, .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost eigh_cost(Node node) {
  return cubic_cost(node, 9);
}

constexpr tn_op kEigh = op_row({.type = "Eigh",
                                .domain = "tenon",
                                .axes = "B* m~ m~ -> B* m, B* m m",
                                .shape = shape<eigh_shape, "x: T[b.. m m] ; T = f32|f64">,
                                .cost = cost<eigh_cost>,
                                .ref = ref<eigh_ref>,
                                .sample = sample<eigh_sample>,
                                .vjp = vjp<eigh_vjp>,
                                .vjp_inputs = 0,
                                .vjp_outputs = 3,
                                .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(eigh, &kEigh)

}  // namespace tenon::linalg

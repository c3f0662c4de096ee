// SPDX-License-Identifier: Apache-2.0
// tenon:Cholesky(x): the lower triangle L with x = L L', of the symmetric part of x.
#include <Eigen/Cholesky>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

Status cholesky_shape(EditView edit, Node node) {
  return edit.set_type(node.output(), node.input(0).type());
}

Status cholesky_ref(const Call& call) {
  TN_TRY(x, read(call, 0));
  Stack y(x.batch, x.rows, x.columns);
  TN_CHECK(for_each(call, x.rows ? x.count() : 0, [&, &x = x](int64_t i) -> Status {
    TN_TRY(factor, factor_of(x[i]));
    const double down = 1 / (factor * factor);
    Matrix even = 0.5 * (down * x[i] + down * x[i].transpose());
    Eigen::LLT<Matrix> found(even);
    if (found.info() != Eigen::Success)
      return invalid(
          "expected a positive definite matrix, got one with an eigenvalue of 0 or less");
    y[i] = found.matrixL();
    y[i] *= factor;
    return {};
  }));
  return write(call, 0, y, {x.rows, x.columns});
}

// x' = L^-T phi(L' dL) L^-1, made symmetric; phi keeps the lower triangle, its diagonal halved
// (Murray 2016, "Differentiation of the Cholesky decomposition", section 3.2).
Status cholesky_vjp(Gradients& g) {
  TN_TRY(n, known_size(g.in(0), 1, "Cholesky"));
  Value phi = pattern(g, g.in(0), n, [](int64_t i, int64_t k) {
    return i > k ? 1.0 : i == k ? 0.5 : 0.0;
  });
  Value across = transposed(g, g.out());
  Value inner = g.mul(product(g, across, g.cotangent()), phi);
  Value half = solved(g, across, inner);  // L^-T phi
  g.set(0, symmetric(g, transposed(g, solved(g, across, transposed(g, half)))));
  return {};
}

Result<Node> cholesky_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t n = random.integer(1, 4);
  TN_TRY(x, random.input("x", {random.integer(1, 2), n, n}));
  Builder b(edit);
  Value eye = pattern(b, x, n, [](int64_t i, int64_t k) { return i == k ? 1.0 : 0.0; });
  Value definite = b.add(product(b, x, transposed(b, x)), eye);
  Node made = b.node({.type = "Cholesky", .inputs = {definite}, .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost cholesky_cost(Node node) {
  return cubic_cost(node, 1.0 / 3);
}

constexpr tn_op kCholesky = op_row({.type = "Cholesky",
                                    .domain = "tenon",
                                    .axes = "B* m~ m~ -> B* m m",
                                    .shape = shape<cholesky_shape, "x: T[b.. m m] ; T = f32|f64">,
                                    .cost = cost<cholesky_cost>,
                                    .ref = ref<cholesky_ref>,
                                    .sample = sample<cholesky_sample>,
                                    .vjp = vjp<cholesky_vjp>,
                                    .vjp_inputs = 0,
                                    .vjp_outputs = 1,
                                    .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(cholesky, &kCholesky)

}  // namespace tenon::linalg

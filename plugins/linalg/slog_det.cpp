// SPDX-License-Identifier: Apache-2.0
// tenon:SlogDet(x): the sign of the determinant and the logarithm of its size, which neither
// overflow nor vanish; 0 and -inf of a singular matrix.
#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

Status slog_det_shape(EditView edit, Node node) {
  return set_types(edit, node, {{}, {}});
}

Status slog_det_ref(const Call& call) {
  TN_TRY(x, read(call, 0));
  Stack sign(x.batch, 1, 1), size(x.batch, 1, 1);
  TN_CHECK(for_each(call, x.count(), [&, &x = x](int64_t i) -> Status {
    double signs = 1, logs = 0;
    if (x.rows > 0) {
      TN_TRY(factor, factor_of(x[i]));
      Eigen::PartialPivLU<Matrix> found(x[i] / (factor * factor));
      logs = static_cast<double>(x.rows) * std::log(factor * factor);
      signs = static_cast<double>(found.permutationP().determinant());
      for (double pivot : found.matrixLU().diagonal()) {
        signs *= pivot > 0 ? 1 : pivot < 0 ? -1 : 0;
        logs += std::log(std::fabs(pivot));
      }
    }
    sign[i](0, 0) = signs;
    size[i](0, 0) = signs == 0 ? -std::numeric_limits<double>::infinity() : logs;
    return {};
  }));
  TN_CHECK(write(call, 0, sign, {}));
  return write(call, 1, size, {});
}

// The logarithm's gradient is the inverse, transposed; the sign is a step.
Status slog_det_vjp(Gradients& g) {
  if (!g.cotangent(1)) return {};
  TN_TRY(n, known_size(g.in(0), 1, "SlogDet"));
  Value eye = pattern(g, g.in(0), n, [](int64_t i, int64_t k) { return i == k ? 1.0 : 0.0; });
  Value weight = g.op("Unsqueeze", {g.cotangent(1), g.ints({-2, -1})});
  g.set(0, g.mul(weight, solved(g, transposed(g, g.in(0)), eye)));
  return {};
}

Result<Node> slog_det_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  int64_t n = random.integer(1, 4);
  TN_TRY(x, random.input("x", {random.integer(1, 2), n, n}));
  Builder b(edit);
  Value far = b.add(x, pattern(b, x, n, [](int64_t i, int64_t k) {
                      return i != k ? 0.0 : i ? 12.0 : -12.0;
                    }));
  Node made = b.node({.type = "SlogDet", .inputs = {far}, .n_outputs = 2, .domain = "tenon"});
  TN_CHECK(b.status());
  return made;
}

OpCost slog_det_cost(Node node) {
  return cubic_cost(node, 2.0 / 3);
}

constexpr tn_op kSlogDet = op_row({.type = "SlogDet",
                                   .domain = "tenon",
                                   .axes = "B* m~ m~ -> B*, B*",
                                   .shape = shape<slog_det_shape, "x: T[b.. m m] ; T = f32|f64">,
                                   .cost = cost<slog_det_cost>,
                                   .ref = ref<slog_det_ref>,
                                   .sample = sample<slog_det_sample>,
                                   .vjp = vjp<slog_det_vjp>,
                                   .vjp_inputs = 1,
                                   .vjp_outputs = 0,
                                   .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(slog_det, &kSlogDet)

}  // namespace tenon::linalg

// SPDX-License-Identifier: Apache-2.0
// Inverse of ONNX Runtime's domain: the solution of x y = 1. A singular matrix is an error, where
// ONNX Runtime gives what division by zero leaves.
#include "tenon/sdk/build.hpp"

#include "matrices.hpp"

namespace tenon::linalg {
namespace {

Status inverse_shape(EditView edit, Node node) {
  return edit.set_type(node.output(), node.input(0).type());
}

Result<std::vector<Value>> inverse_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  const Type type = b.ranked(x, "Inverse");
  TN_CHECK(b.status());
  const int64_t n = type.dims.back() >= 0 ? type.dims.back() : type.dims[type.rank() - 2];
  if (n < 0) return unsupported("decomposed only where the size of a matrix is known");
  const uint32_t dtype = type.dtype == TN_F64 ? TN_F64 : TN_F32;
  Value one =
      pattern(b, b.cast(x, dtype), n, [](int64_t i, int64_t k) { return i == k ? 1.0 : 0.0; });
  Value y = b.cast(solved(b, b.cast(x, dtype), one), type.dtype);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> inverse_sample(EditView edit, uint64_t seed) {
  Sample random(edit, seed);
  const int64_t n = random.integer(1, 4), batch = random.integer(1, 2);
  TN_TRY(x, random.input("x", {batch, n, n}));
  Builder b(edit);
  // Far from singular, whatever the numbers are.
  Value a = b.add(x, pattern(b, x, n, [](int64_t i, int64_t k) { return i == k ? 12.0 : 0.0; }));
  Node made = b.node({.type = "Inverse", .inputs = {a}, .domain = "com.microsoft"});
  TN_CHECK(b.status());
  return made;
}

constexpr tn_op kInverse = op_row({.type = "Inverse",
                                   .domain = "com.microsoft",
                                   .shape = shape<inverse_shape, "x: T[b.. m m] ; T = float">,
                                   .decompose = decompose<inverse_decompose>,
                                   .sample = sample<inverse_sample>});

}  // namespace

TENON_OPS(inverse, &kInverse)

}  // namespace tenon::linalg

// SPDX-License-Identifier: Apache-2.0
// An operator as others write them, for vmap: its weights have no batch in its axes.
#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/op.hpp"

namespace {

using namespace tenon;

// x a + x b
Result<std::vector<Value>> two_products(EditView edit, Node node) {
  Builder b(edit);
  Value y = b.add(b.op("MatMul", {node.input(0), node.input(1)}),
                  b.op("MatMul", {node.input(0), node.input(2)}));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

constexpr tn_op kTwoProducts = op_row({.type = "TwoProducts",
                                       .domain = "batched",
                                       .axes = "B* m k, k n, k n -> B* m n",
                                       .decompose = decompose<two_products>});

}  // namespace

TENON_OPS(batched_rows, &kTwoProducts)

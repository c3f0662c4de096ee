// SPDX-License-Identifier: Apache-2.0
#pragma once
// One matrix product with its tail: what MatMul and Gemm share.

#include "../tail.hpp"

namespace tenon::onednn {

struct Product {
  int node = kNone;
  int a = kNone;  // values
  int b = kNone;
  bool transpose_a = false;
  bool transpose_b = false;
  int bias = kNone;  // of the node itself: [n] or something that broadcasts
};
// Tries with all that can be absorbed, then alone.
void lower_product(Lowering& lowering, const Product& product);
// Half of the product of a large matrix with its own transpose (the same memory); false, and
// nothing done, for other products.
bool lower_symmetric_product(Lowering& lowering, const Product& product);

}  // namespace tenon::onednn

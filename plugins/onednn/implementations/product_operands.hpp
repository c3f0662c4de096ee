// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operands of a product in types and layouts that oneDNN's matmul multiplies fast.

#include "product.hpp"

namespace tenon::onednn {

// The operands as the primitive reads them, whatever it takes along.
struct ProductOperands {
  View a, b;
  bool int8 = false;
  bool packs_b = false;       // once, while the plan is made
  bool packs_in_run = false;  // whenever it runs
  bool folds = false;         // the rows of all batches are one product
  ElementType b_type = ElementType::kF32;
};

// Adds the steps that convert and copy them.
ProductOperands read_product_operands(const ProductSite& site);

}  // namespace tenon::onednn

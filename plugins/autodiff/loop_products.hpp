// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products in the steps of a Scan or a Loop: which of them the backward pass keeps, not computes
// again, and which of its sums over all steps are one product behind the last step.

#include <optional>

#include "bodies.hpp"

namespace tenon::autodiff {

// Values of the body, each a product or what a product is added to: keeping them is worth the
// memory, as they are at most four times as large as the states that are kept in any case.
std::vector<Value> products_to_keep(Graph body, const Interface& parts);

// transpose(left) right, both [rows, _]: the gradient of a weight by what was multiplied with it
// and the cotangent of the product.
struct RowsProduct {
  Value left, right;
};
// Where the sum of this gradient over steps is better one product: where both sides are inputs or
// among `there`, what each step gives anyway, or take no more memory in a step than the sum.
std::optional<RowsProduct> worth_a_product(Value gradient, std::span<const Value> there);

// The sum of such products, of a Loop whose number of steps is known: under vmap what its steps
// give is as long for all examples then (ragged.hpp). It goes over the first axis of left and
// right, [steps, rows, _].
Value product_over_steps(Builder& b, Value left, Value right);

}  // namespace tenon::autodiff

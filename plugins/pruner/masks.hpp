// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks of single weights: which elements stay. In a graph a mask is either just zeros in the
// weight, or nodes that multiply by it,
//
//   mask (bool) -> Cast -> Mul(weight, .) -> what read the weight
//
// so that training keeps it: the gradient of what was pruned is zero by the chain rule, and no
// optimizer need know. Constant folding turns the nodes into zeros again.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::pruner {

using Mask = std::vector<uint8_t>;  // one per element: 1 stays, 0 goes

// Along `axis`, in groups of m neighbours, the n of highest score stay; an element with a score of
// minus infinity goes in any case.
Mask keep_n_of_m(const std::vector<double>& scores,
                 const std::vector<int64_t>& shape,
                 size_t axis,
                 int64_t n,
                 int64_t m);
// The `gone` elements of lowest score go, the lower position where equal.
Mask drop_lowest(const std::vector<double>& scores, uint64_t gone);

// The tensor with zeros where the mask says so.
Result<Tensor> apply_mask(tn_ctx* ctx, const Tensor& tensor, const Mask& mask);
// Elements that are not zero, of a float tensor.
Result<Mask> mask_of_zeros(const Tensor& tensor);

// Puts nodes that multiply by the mask between the constant and all that reads it.
Status insert_mask(EditView edit, Value constant, const Mask& mask);
// The masks that nodes multiply weights by.
struct NamedMask {
  std::string weight;
  Mask mask;
};
std::vector<NamedMask> masks_of(Graph graph);
// Turns such nodes into zeros in their weights.
Status fold_masks(EditView edit);
// After that: the masks of weights that are not among those named `chosen` come back.
Status put_back_masks(EditView edit,
                      const std::vector<NamedMask>& masks,
                      const std::vector<std::string>& chosen);

}  // namespace tenon::pruner

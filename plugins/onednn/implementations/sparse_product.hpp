// SPDX-License-Identifier: Apache-2.0
#pragma once
// When products with weights that are mostly zeros are faster by kernels/sparse_product.h than by
// the fastest dense kernel, and in which blocks their weights are stored.

#include <array>
#include <string>

#include "kernels/sparse_product.h"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

// How weights are stored: the blocks that cost the least.
struct SparseForm {
  int64_t width = 1;  // columns of a block
  int64_t n_blocks = 0;
  double share = 1;  // of all steps of k and columns, what is multiplied
  double cost = 1;   // the same, blocks counted by what one of them costs beside single weights
};
// What the choice asks of the weights themselves. Counting reads all of them, so plans of a model
// for other shapes share the counts.
struct SparseCounts {
  static constexpr std::array<int64_t, 3> kWidths = {1, 4, kernels::kSparsePanel};
  double nonzero = 1;                                        // share of the weights
  std::array<int64_t, kWidths.size()> n_blocks = {0, 0, 0};  // with a number other than zero
};
SparseCounts count_nonzero(const kernels::SparseWeights& weights);
// m: rows that are multiplied with them
SparseForm cheapest_form(const kernels::SparseWeights& weights,
                         const SparseCounts& counts,
                         int64_t m);

// Why weights in this form cannot be multiplied so, or have too few zeros for it; empty: they can.
std::string why_not_sparse(const kernels::SparseWeights& weights, const SparseForm& form);
// By the sweeps; empty: it is faster than a dense product.
std::string why_slower_sparse(const Lowering& lowering,
                              const kernels::SparseWeights& weights,
                              const SparseForm& form,
                              int64_t m);
// What the time depends on beside the shape.
std::string traits_of(const SparseForm& form);

}  // namespace tenon::onednn

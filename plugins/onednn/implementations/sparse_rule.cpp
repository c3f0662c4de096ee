// SPDX-License-Identifier: Apache-2.0
// The choice between sparse and dense products.

#include <algorithm>
#include <cstdio>

#include "sparse_product.hpp"

namespace tenon::onednn {
namespace {

using kernels::SparseWeights;

// With fewer zeros no form is faster, and what is stored is no smaller.
constexpr double kMostNonzero = 0.6;

// What a column of a block costs beside a single weight (bench_onednn_sparse): what is read of the
// rows serves all columns of a block.
constexpr double kCostOfFour = 0.85;
constexpr double kCostOfSixteen = 0.75;

// The weights have no gaps between them, so that their order does not matter.
template <class T>
double nonzero_share(const SparseWeights& weights) {
  const auto* numbers = static_cast<const T*>(weights.data);
  const int64_t all = weights.k * weights.n;
  return 1 - static_cast<double>(std::count(numbers, numbers + all, T{0})) /
                 static_cast<double>(all);
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

// The largest cost that is still faster than dense.
double most_cost(const Lowering& lowering, const SparseWeights& weights, int64_t m) {
  const bool is_short = lowering.real_type() == ElementType::kBf16;
  (void)m;
  if (weights.are_codes) return 0.35;
  return is_short ? 0.2 : 0.4;
}

}  // namespace

SparseForm cheapest_form(const SparseWeights& weights) {
  const int64_t all = kernels::sparse_steps(weights.k, weights.are_codes) * weights.n;
  SparseForm best;
  if (all == 0) return best;
  const double nonzero =
      weights.are_codes ? nonzero_share<int8_t>(weights) : nonzero_share<float>(weights);
  if (nonzero > kMostNonzero) return {.share = nonzero, .cost = nonzero};
  best.cost = 2;
  for (int64_t width : {int64_t{1}, int64_t{4}, kernels::kSparsePanel}) {
    SparseForm form{.width = width, .n_blocks = kernels::count_sparse_blocks(weights, width)};
    form.share = static_cast<double>(form.n_blocks * width) / static_cast<double>(all);
    form.cost = form.share * (width == 1 ? 1 : width == 4 ? kCostOfFour : kCostOfSixteen);
    if (form.cost < best.cost) best = form;
  }
  return best;
}

std::string why_not_sparse(const Lowering& lowering,
                           const SparseWeights& weights,
                           const SparseForm& form,
                           int64_t m) {
  const SparseUse use = lowering.options().sparse;
  if (kernels::sparse_steps(weights.k, weights.are_codes) > kernels::kMostSparseSteps)
    return "sums of more than 65535 steps";
  const std::string kept = percent(1 - form.share) + " of the weights' steps are zeros";
  if (form.n_blocks == 0 && form.share > 0) return kept + ": too few to leave out";
  if (use == SparseUse::kAll) return {};
  const double most = most_cost(lowering, weights, m);
  if (form.cost > most)
    return kept + ": dense is faster until " + percent(1 - most) + " of single ones";
  return {};
}

}  // namespace tenon::onednn

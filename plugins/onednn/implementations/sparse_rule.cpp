// SPDX-License-Identifier: Apache-2.0
// The choice between sparse and dense products.

#include <algorithm>
#include <cstdio>

#include "cpu.hpp"
#include "float_step.hpp"
#include "sparse_product.hpp"

namespace tenon::onednn {
namespace {

using kernels::SparseWeights;

// With fewer zeros no form is faster, and what is stored is no smaller.
constexpr double kMostNonzero = 0.6;

// With fewer rows than this registers are mostly empty, but for columns that lie side by side in
// them.
constexpr int64_t kFewRows = 32;

// What a column of a block costs beside a single weight (bench_onednn_sparse): what is read of the
// rows serves all columns of a block.
double cost_of(int64_t width, int64_t m) {
  if (width == kernels::kSparsePanel) return 0.6;
  if (m < kFewRows) return 3;
  return width == 1 ? 1 : 0.5;
}

// The weights have no gaps between them, so that their order does not matter. Where a few runs
// say clearly that there are few zeros, the others are not read: that would take as long as all
// else of compiling a layer.
template <class T>
double nonzero_share(const SparseWeights& weights) {
  constexpr int64_t kRun = 64, kRuns = 32;
  constexpr double kClearlyDense = 0.8;
  const auto* numbers = static_cast<const T*>(weights.data);
  const int64_t all = weights.k * weights.n;
  if (all > 4 * kRuns * kRun) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < kRuns; ++i) {
      const T* run = numbers + i * ((all - kRun) / (kRuns - 1));
      zeros += std::count(run, run + kRun, T{0});
    }
    const double share = 1 - static_cast<double>(zeros) / (kRuns * kRun);
    if (share > kClearlyDense) return share;
  }
  return 1 -
         static_cast<double>(std::count(numbers, numbers + all, T{0})) / static_cast<double>(all);
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

// Where sums are short, copying rows and turning results is most of the work; what is dense is two
// or four times as fast in bf16 and 8 bits. Limits of f32 from layers of ResNet-50 and MobileNetV2
// in place (AVX-512, two threads, batch 1): 96 -> 576, 14x14, 80 % zeros 1.4x, 64 -> 256, 56x56,
// 90 % 0.85x. Those of bf16 from bench_onednn_sparse alone; of 8 bits from there and from MiniLM in
// place: 90 % single zeros, of which 34 % of the fours stay, 1.38x with one thread and 1.25x with
// two. Beside products of f32 on tiles, two threads and 30 shapes: 80 % zeros 1.06x to 1.19x, 75 %
// 0.92x to 1.07x, 90 % of 128 elements 0.7x.
struct Limit {
  int64_t least_k, least_n;
  double most_cost;
};
constexpr Limit kReals{96, 64, 0.25};
constexpr Limit kRealsOnTiles{256, 64, 0.2};
constexpr Limit kShortReals{384, 256, 0.11};
constexpr Limit kInt8{320, 128, 0.35};

const Limit& limit_of(const Lowering& lowering, const SparseWeights& weights, int64_t m) {
  if (weights.are_quantized) return kInt8;
  if (lowering.real_type() == ElementType::kBf16) return kShortReals;
  return is_faster_on_tiles(lowering, m, weights.n, weights.k) ? kRealsOnTiles : kReals;
}

}  // namespace

std::string why_slower_sparse(const Lowering& lowering,
                              const SparseWeights& weights,
                              const SparseForm& form,
                              int64_t m) {
  const bool is_f32 = !weights.are_quantized && lowering.real_type() == ElementType::kF32;
  if (m < kFewRows && (form.width < kernels::kSparsePanel || !is_f32))
    return is_f32 ? "fewer than 32 rows, and zeros in no blocks of 16 columns"
                  : "fewer than 32 rows";
  if (!is_f32 && computes_in_tiles()) return "AMX tiles multiply all of them as fast";
  const Limit& limit = limit_of(lowering, weights, m);
  if (weights.k < limit.least_k || weights.n < limit.least_n)
    return "a small matrix (" + std::to_string(weights.k) + " x " + std::to_string(weights.n) + ")";
  const double most = limit.most_cost;
  if (form.cost <= most) return {};
  return percent(1 - form.share) + " of what is multiplied are zeros: dense is faster until " +
         percent(1 - most) + " are, or more where they stand in blocks";
}

SparseCounts count_nonzero(const SparseWeights& weights) {
  SparseCounts counts;
  if (weights.k * weights.n == 0) return counts;
  counts.nonzero =
      weights.are_quantized ? nonzero_share<int8_t>(weights) : nonzero_share<float>(weights);
  if (counts.nonzero > kMostNonzero) return counts;
  for (size_t i = 0; i < counts.n_blocks.size(); ++i)
    counts.n_blocks[i] = kernels::count_sparse_blocks(weights, SparseCounts::kWidths[i]);
  return counts;
}

SparseForm cheapest_form(const SparseWeights& weights, const SparseCounts& counts, int64_t m) {
  const int64_t all = kernels::sparse_steps(weights.k, weights.are_quantized) * weights.n;
  SparseForm best;
  if (all == 0) return best;
  if (counts.nonzero > kMostNonzero) return {.share = counts.nonzero, .cost = counts.nonzero};
  best.cost = 2;
  for (size_t i = 0; i < counts.n_blocks.size(); ++i) {
    SparseForm form{.width = SparseCounts::kWidths[i], .n_blocks = counts.n_blocks[i]};
    form.share = static_cast<double>(form.n_blocks * form.width) / static_cast<double>(all);
    form.cost = form.share * cost_of(form.width, m);
    if (form.cost < best.cost) best = form;
  }
  return best;
}

std::string why_not_sparse(const SparseWeights& weights, const SparseForm& form) {
  if (kernels::sparse_steps(weights.k, weights.are_quantized) > kernels::kMostSparseSteps)
    return "sums of more than 65535 steps";
  if (form.n_blocks == 0 && form.share > 0)
    return percent(1 - form.share) + " of the weights are zeros: too few to leave out";
  return {};
}

std::string traits_of(const SparseForm& form) {
  return percent(form.share) + " in blocks of " + std::to_string(form.width);
}

}  // namespace tenon::onednn

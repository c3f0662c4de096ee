// SPDX-License-Identifier: Apache-2.0
#include "draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/expr.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {
namespace {

// Numbers of kDrawnPairs blocks from this one on, of which the first n are wanted.
void normal_tile(
    const Context& context, const Draws& draws, uint64_t block, int64_t n, float* out) {
  double radius[kDrawnPairs], angle[kDrawnPairs], cosine[kDrawnPairs];
  const RealOps* ops = nullptr;
  context.table->real_ops(&ops);
  auto apply = [&](uint32_t op, const double* x, double* y) {
    ops->of[op](x, x, x, kDrawnPairs, y);
  };
  context.table->uniform_pairs({draws.seed, draws.stream, block, radius, angle});
  for (double& r : radius)
    r = 1.0 - r;  // in (0, 1]
  apply(TN_EXPR_LOG, radius, radius);
  for (double& r : radius)
    r = std::sqrt(-2.0 * r);
  for (double& a : angle)
    a *= 2.0 * std::numbers::pi;
  apply(TN_EXPR_COS, angle, cosine);
  apply(TN_EXPR_SIN, angle, angle);
  for (int64_t i = 0; i < n; ++i) {
    const double of_pair = i % 2 == 0 ? cosine[i / 2] : angle[i / 2];
    out[i] = static_cast<float>(draws.shift + draws.scale * (radius[i / 2] * of_pair));
  }
}

}  // namespace

void draw_uniform(const Context& context, const Draws& draws, float* out, int64_t n) {
  // A number takes about as long as 16 bytes of traffic.
  parallel_for(context.parallel, (n + 1) / 2, grain_rows(2 * 16), [&](int64_t lo, int64_t hi) {
    context.table->uniform_blocks(
        {draws, static_cast<uint64_t>(lo), out + 2 * lo, std::min(2 * hi, n) - 2 * lo});
  });
}

void draw_normal(const Context& context, const Draws& draws, float* out, int64_t n) {
  constexpr int64_t kTile = 2 * kDrawnPairs;
  // About as long as 128 bytes of traffic.
  parallel_for(context.parallel, (n + kTile - 1) / kTile, grain_rows(kTile * 128),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i)
                   normal_tile(context, draws, static_cast<uint64_t>(i * kDrawnPairs),
                               std::min(kTile, n - i * kTile), out + i * kTile);
               });
}

}  // namespace tenon::onednn::kernels

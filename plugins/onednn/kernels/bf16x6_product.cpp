// SPDX-License-Identifier: Apache-2.0
#include "bf16x6_product.h"

#include <algorithm>

#include "scratch.h"
#include "tile_product.h"

namespace tenon::onednn::kernels {
namespace {

// Of the 2 MiB of L2 of CPUs with tiles: the parts, and the sums that wait.
constexpr int64_t kPartBytes = 1000 << 10;
constexpr int64_t kSumBytes = 400 << 10;
constexpr int64_t kThreadUnits = 2;       // for each thread, so that threads end together
constexpr int64_t kLeastUnitSteps = 512;  // smaller ones are not cut for that
constexpr int64_t kGrainSteps = 32;       // of one thread, some 4 us
// Times in steps of k of a block: to split one of rows or columns, where nothing runs beside it,
// and to begin and end a block and a unit.
constexpr double kSplitTime = 2;
constexpr double kBlockTime = 0.5;
constexpr double kUnitTime = 8;

constexpr int64_t parts(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

int64_t panels_of(const SplitProductArgs& args) {
  return parts(args.n, kTilePanel);
}

bool fits(const SplitCut& cut, int64_t k) {
  if (cut.blocks + cut.panels <= 2) return true;
  const int64_t sums = split_pieces(k) == 1 ? 0 : cut.blocks * cut.panels;
  return (cut.blocks + cut.panels) * split_piece_bytes(k) <= kPartBytes &&
         sums * kTileRows * kTilePanel * 4 <= kSumBytes;
}

double time_of(const SplitCut& cut, int64_t n_units, int64_t k, int threads) {
  const auto blocks = static_cast<double>(cut.blocks);
  const auto panels = static_cast<double>(cut.panels);
  const auto steps = static_cast<double>(split_steps(k));
  const double unit =
      blocks * panels * (steps + kBlockTime) + (blocks + panels) * steps * kSplitTime + kUnitTime;
  return unit * static_cast<double>(parts(n_units, threads));
}

SplitUnit unit_of(const SplitProductArgs& args, int64_t unit) {
  const int64_t n_blocks = split_blocks(args.m);
  const int64_t n_rows = parts(n_blocks, args.cut.blocks);
  const int64_t n_parts = parts(panels_of(args), args.cut.panels);
  const bool has_own_rows = divides_tile_rows(args.m, args.n, args.k);
  const int64_t at = has_own_rows ? unit / n_parts : unit % n_rows;
  const int64_t part = has_own_rows ? unit % n_parts : unit / n_rows;
  // Units of rows differ by a block at most.
  const int64_t row = at * n_blocks / n_rows * kTileRows;
  const int64_t end = std::min((at + 1) * n_blocks / n_rows * kTileRows, args.m);
  const int64_t panel = part * args.cut.panels;
  return {.row = row,
          .n_rows = end - row,
          .panel = panel,
          .n_panels = std::min(args.cut.panels, panels_of(args) - panel)};
}

}  // namespace

bool have_parts(const float* numbers, int64_t n) {
  return amx::have_parts(numbers, n);
}

SplitCut cut_product(int64_t m, int64_t n, int64_t k, int threads) {
  const int64_t n_blocks = split_blocks(m), n_panels = parts(n, kTilePanel);
  const int64_t wanted = std::clamp<int64_t>(n_blocks * n_panels * split_steps(k) / kLeastUnitSteps,
                                             1, kThreadUnits * threads);
  SplitCut best;
  double least = time_of(best, n_blocks * n_panels, k, threads);
  for (SplitCut cut; cut.blocks <= std::min(n_blocks, kMostSplitRows / kTileRows); ++cut.blocks) {
    for (cut.panels = 1; cut.panels <= std::min(n_panels, kMostSplitPanels); ++cut.panels) {
      if (!fits(cut, k)) break;
      const int64_t n_units = parts(n_blocks, cut.blocks) * parts(n_panels, cut.panels);
      const double time = time_of(cut, n_units, k, threads);
      if (n_units < wanted || time >= least) continue;
      best = cut;
      least = time;
    }
  }
  constexpr auto kStepProducts = static_cast<double>(kTileRows * kTilePanel * kSplitDepth);
  best.efficiency = static_cast<double>(m * n * k) / kStepProducts / (least * threads);
  return best;
}

void bf16x6_product(const Context& context, const SplitProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const SplitCut& cut = args.cut;
  const int64_t bytes = split_unit_bytes(args.k, cut.blocks * kTileRows, cut.panels);
  const int64_t steps = cut.blocks * cut.panels * split_steps(args.k);
  const int64_t n_units =
      parts(split_blocks(args.m), cut.blocks) * parts(panels_of(args), cut.panels);
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      SplitUnit unit = unit_of(args, i);
      unit.memory = scratch_of_thread(bytes);
      amx::split_unit(args, unit);
    }
  };
  parallel_for(context.parallel, n_units,
               std::max<int64_t>(1, kGrainSteps / std::max<int64_t>(1, steps)), run);
}

}  // namespace tenon::onednn::kernels

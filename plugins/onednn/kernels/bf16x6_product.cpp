// SPDX-License-Identifier: Apache-2.0
#include "bf16x6_product.h"

#include <algorithm>
#include <cmath>

#include "scratch.h"
#include "tile_product.h"

namespace tenon::onednn::kernels {
namespace {

// Of the 2 MiB of L2 of CPUs with tiles: the parts, and the sums that wait.
constexpr int64_t kPartBytes = 1000 << 10;
constexpr int64_t kSumBytes = 400 << 10;
constexpr int64_t kUnits = 8;        // of work, so that threads end together
constexpr int64_t kLeastBlocks = 8;  // of rows of a unit, whose columns are split once for them
constexpr int64_t kLeastPanels = 6;  // and of columns, for which its rows are split once
constexpr int64_t kGrainSteps = 32;  // of one thread, some 4 us

constexpr int64_t parts(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

struct Cutting {
  int64_t n_blocks = 0;  // of rows
  int64_t n_rows = 0;    // units side by side, which differ by a block at most
  int64_t panels = 0;    // of a unit
  int64_t n_parts = 0;   // of the panels

  int64_t first_row(int64_t unit) const { return unit * n_blocks / n_rows * kTileRows; }
  int64_t most_rows() const { return parts(n_blocks, n_rows) * kTileRows; }
};

// Units are about as wide as they are high where that is possible.
Cutting cut(const SplitProductArgs& args) {
  Cutting made;
  made.n_blocks = split_blocks(args.m);
  const int64_t panels = parts(args.n, kTilePanel);
  const int64_t by_rows = std::min(kUnits, parts(made.n_blocks, kLeastBlocks));
  const int64_t wanted =
      std::min(parts(kUnits, by_rows), std::max<int64_t>(1, panels / kLeastPanels));
  const int64_t fit = std::max<int64_t>(2, kPartBytes / split_piece_bytes(args.k));
  const int64_t of_rows = std::min(parts(made.n_blocks, by_rows), fit / 2);
  const int64_t n_parts = std::max(wanted, parts(panels, fit - of_rows));
  made.panels = parts(panels, n_parts);
  made.n_parts = parts(panels, made.panels);
  const int64_t sums = kSumBytes / (kTileRows * kTilePanel * 4) / made.panels;
  int64_t most = std::min(fit - made.panels, kMostSplitRows / kTileRows);
  if (split_pieces(args.k) > 1) most = std::min(most, sums);
  made.n_rows = std::max(parts(made.n_blocks, std::max<int64_t>(1, most)), by_rows);
  return made;
}

SplitUnit unit_of(const SplitProductArgs& args, const Cutting& cutting, int64_t unit) {
  const bool has_own_rows = divides_tile_rows(args.m, args.n, args.k);
  const int64_t at = has_own_rows ? unit / cutting.n_parts : unit % cutting.n_rows;
  const int64_t part = has_own_rows ? unit % cutting.n_parts : unit / cutting.n_rows;
  const int64_t row = cutting.first_row(at);
  const int64_t panel = part * cutting.panels;
  return {.row = row,
          .n_rows = std::min(cutting.first_row(at + 1), args.m) - row,
          .panel = panel,
          .n_panels = std::min(cutting.panels, parts(args.n, kTilePanel) - panel)};
}

}  // namespace

bool have_parts(const float* numbers, int64_t n) {
  constexpr float kLargest = 0x1.fefffep127F;  // what is rounded to a finite bf16
  return std::all_of(numbers, numbers + n, [](float x) { return std::fabs(x) <= kLargest; });
}

void bf16x6_product(const Context& context, const SplitProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Cutting cutting = cut(args);
  const int64_t rows = cutting.most_rows();
  const int64_t bytes = split_unit_bytes(args.k, rows, cutting.panels);
  const int64_t steps = rows / kTileRows * cutting.panels * split_steps(args.k);
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      SplitUnit unit = unit_of(args, cutting, i);
      unit.memory = scratch_of_thread(bytes);
      amx::split_unit(args, unit);
    }
  };
  parallel_for(context.parallel, cutting.n_rows * cutting.n_parts,
               std::max<int64_t>(1, kGrainSteps / std::max<int64_t>(1, steps)), run);
}

}  // namespace tenon::onednn::kernels

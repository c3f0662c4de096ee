// SPDX-License-Identifier: Apache-2.0
#include "float_product.h"

#include <algorithm>

#include "epilogue_block.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

constexpr int64_t kWholeRows = 6;  // what all levels multiply at once
// Of a block: a panel is read from L2 for each six of them, and the block itself stays there over
// all panels. Where all rows fit there, each panel is read from memory once instead.
constexpr int64_t kLeastRows = 48, kMostRows = 192;
constexpr int64_t kBlockBytes = int64_t{512} << 10;
// Blocks times panels, so that no thread waits long for another's last one.
constexpr int64_t kUnits = 32;
constexpr int64_t kGrainProducts = int64_t{1} << 19;

struct Cutting {
  int64_t n_blocks = 0;  // of rows, all of about the same size
  int64_t panel = 0;     // columns
  int64_t panels = 0;
  bool keeps_panels = false;  // a panel meets all blocks before the next one does

  int64_t first_row(const FloatProductArgs& args, int64_t block) const {
    return block * args.m / n_blocks;
  }
};

Cutting cut(const Context& context, const FloatProductArgs& args) {
  Cutting made;
  made.panel = float_panel(context);
  made.panels = (args.n + made.panel - 1) / made.panel;
  const int64_t row_bytes = 4 * std::max<int64_t>(1, args.k);
  const int64_t rows = std::clamp(kBlockBytes / row_bytes, kLeastRows, kMostRows);
  const int64_t least = (args.m + rows - 1) / rows;
  const int64_t most = std::max<int64_t>(1, args.m / kWholeRows);
  made.n_blocks = std::max(least, std::min(most, kUnits / made.panels));
  made.keeps_panels = args.m * row_bytes <= kBlockBytes;
  return made;
}

void run_units(const Context& context,
               const FloatProductArgs& args,
               const Cutting& cutting,
               int64_t lo,
               int64_t hi) {
  for (int64_t unit = lo; unit < hi; ++unit) {
    const int64_t part = cutting.keeps_panels ? unit % cutting.n_blocks : unit / cutting.panels;
    const int64_t row = cutting.first_row(args, part);
    const int64_t column =
        (cutting.keeps_panels ? unit / cutting.n_blocks : unit % cutting.panels) * cutting.panel;
    FloatBlock block;
    block.rows = args.a + row * args.a_stride;
    block.row_stride = args.a_stride;
    block.n_rows = cutting.first_row(args, part + 1) - row;
    block.depth = args.k;
    block.panel = args.b + column * args.k;
    block.epilogue = epilogue_of_block(args, row, column, cutting.panel);
    context.table->float_block(block);
  }
}

}  // namespace

int64_t float_panel(const Context& context) {
  return context.table == &kernel_table(Level::kAvx512) ? kMostFloatPanel : 16;
}

void pack_floats(const FloatWeights& weights, int64_t panel, float* packed) {
  for (int64_t first = 0; first < weights.n; first += panel) {
    const int64_t columns = std::min(panel, weights.n - first);
    for (int64_t i = 0; i < weights.k; ++i, packed += panel) {
      const float* const from = weights.row(i) + first * weights.n_stride;
      for (int64_t column = 0; column < columns; ++column)
        packed[column] = from[column * weights.n_stride];
      std::fill(packed + columns, packed + panel, 0.0F);
    }
  }
}

void float_product(const Context& context, const FloatProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Cutting cutting = cut(context, args);
  const int64_t products = args.m / cutting.n_blocks * cutting.panel * args.k;
  parallel_for(context.parallel, cutting.n_blocks * cutting.panels,
               std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, products)),
               [&](int64_t lo, int64_t hi) { run_units(context, args, cutting, lo, hi); });
}

}  // namespace tenon::onednn::kernels

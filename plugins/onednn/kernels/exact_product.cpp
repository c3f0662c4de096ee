// SPDX-License-Identifier: Apache-2.0
#include "exact_product.h"

#include <algorithm>

#include "kernel_table.h"
#include "scratch.h"

namespace tenon::onednn::kernels {

namespace {

// Of a block: each panel of the right operand is packed once for so many rows.
constexpr int64_t kRows = 96, kColumns = 128;
constexpr int64_t kGrainProducts = int64_t{1} << 17;

struct Cutting {
  int64_t row_blocks, column_blocks;

  explicit Cutting(const ExactProductArgs& args)
      : row_blocks((args.m + kRows - 1) / kRows),
        column_blocks((args.n + kColumns - 1) / kColumns) {}
  int64_t units(const ExactProductArgs& args) const {
    return row_blocks * column_blocks * static_cast<int64_t>(args.a_starts.size());
  }
};

template <class Pointer>
Pointer element(Pointer data, int64_t at, int64_t bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(data) + at * bytes;
}

void run_unit(const Context& context,
              const ExactProductArgs& args,
              const Cutting& cutting,
              int64_t unit) {
  const int64_t bytes = element_bytes(args.type);
  const int64_t column = unit % cutting.column_blocks * kColumns;
  const int64_t row = unit / cutting.column_blocks % cutting.row_blocks * kRows;
  const int64_t product = unit / cutting.column_blocks / cutting.row_blocks;
  const auto at = static_cast<size_t>(product);
  ExactBlock block;
  block.type = args.type == ElementType::kU32   ? ElementType::kI32
               : args.type == ElementType::kU64 ? ElementType::kI64
                                                : args.type;
  block.a = element(args.a, args.a_starts[at] + row * args.a_row, bytes);
  block.a_row = args.a_row;
  block.a_k = args.a_k;
  block.b = element(args.b, args.b_starts[at] + column * args.b_column, bytes);
  block.b_k = args.b_k;
  block.b_column = args.b_column;
  block.dst = element(args.dst, (product * args.m + row) * args.n + column, bytes);
  block.dst_row = args.n;
  block.rows = std::min(kRows, args.m - row);
  block.columns = std::min(kColumns, args.n - column);
  block.depth = args.k;
  block.room = scratch_of_thread(kExactRoom);
  context.table->exact_block(block);
}

}  // namespace

void exact_product(const Context& context, const ExactProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Cutting cutting(args);
  const int64_t products =
      std::min(kRows, args.m) * std::min(kColumns, args.n) * std::max<int64_t>(1, args.k);
  parallel_for(context.parallel, cutting.units(args),
               std::max<int64_t>(1, kGrainProducts / products), [&](int64_t lo, int64_t hi) {
                 for (int64_t unit = lo; unit < hi; ++unit)
                   run_unit(context, args, cutting, unit);
               });
}

}  // namespace tenon::onednn::kernels

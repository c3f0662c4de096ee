// SPDX-License-Identifier: Apache-2.0
#include "exact_product.h"

#include <algorithm>

#include "kernel_table.h"
#include "scratch.h"

namespace tenon::onednn::kernels {

namespace {

// Columns of a block; those of one whose right operand is packed already are more, as its rows are
// packed for each block.
constexpr int64_t kColumns = 128, kPackedColumns = 512;
constexpr int64_t kGrainProducts = int64_t{1} << 17;
constexpr int64_t kManyProducts = int64_t{1} << 22;  // for which two parallel regions are worth it

int64_t blocks_of(int64_t n, int64_t block) {
  return (n + block - 1) / block;
}

// Each block of rows would pack the right operand again; a column is not packed.
bool packs_right(const ExactProductArgs& args) {
  return args.n > 1 && args.m > kExactRows && args.m * args.n * args.k >= kManyProducts;
}

template <class Pointer>
Pointer element(Pointer data, int64_t at, int64_t bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(data) + at * bytes;
}

// One product of a stack, in blocks of rows and columns.
class Product {
 public:
  Product(const Context& context, const ExactProductArgs& args, int64_t columns)
      : context_(context),
        args_(args),
        columns_(columns),
        bytes_(element_bytes(args.type)),
        type_(args.type == ElementType::kU32   ? ElementType::kI32
              : args.type == ElementType::kU64 ? ElementType::kI64
                                               : args.type) {}

  int64_t n_blocks() const { return blocks_of(args_.m, kExactRows) * blocks_of(args_.n, columns_); }

  // Columns [column, column + columns) of the right operand; packed, they begin at a whole panel.
  ExactPack right(int64_t product, int64_t column, int64_t columns, bool is_packed) const {
    ExactPack right{.type = type_, .b_k = args_.b_k, .b_column = args_.b_column};
    const int64_t start = args_.b_starts[static_cast<size_t>(product)];
    right.b = element(args_.b, start + column * args_.b_column, bytes_);
    right.depth = args_.k;
    right.columns = std::min(columns, args_.n - column);
    if (is_packed) right.panels = element(args_.room, column * args_.k, bytes_);
    return right;
  }

  void run_block(int64_t product, int64_t at, bool is_packed) const {
    const int64_t column_blocks = blocks_of(args_.n, columns_);
    const int64_t column = at % column_blocks * columns_, row = at / column_blocks * kExactRows;
    const int64_t start = args_.a_starts[static_cast<size_t>(product)];
    ExactBlock block{.right = right(product, column, columns_, is_packed)};
    block.a = element(args_.a, start + row * args_.a_row, bytes_);
    block.a_row = args_.a_row;
    block.a_k = args_.a_k;
    block.dst = element(args_.dst, (product * args_.m + row) * args_.n + column, bytes_);
    block.dst_row = args_.n;
    block.rows = std::min(kExactRows, args_.m - row);
    block.room = scratch_of_thread(kExactRoom);
    context_.table->exact_block(block);
  }

 private:
  const Context& context_;
  const ExactProductArgs& args_;
  const int64_t columns_;
  const int64_t bytes_;
  const ElementType type_;
};

// The right operand is packed once, by all threads.
void multiply_packed(const Context& context, const ExactProductArgs& args) {
  constexpr int64_t kPackColumns = 64;
  const Product product(context, args, kPackedColumns);
  for (int64_t i = 0; i < static_cast<int64_t>(args.a_starts.size()); ++i) {
    parallel_for(context.parallel, blocks_of(args.n, kPackColumns),
                 grain_rows(args.k * kPackColumns * 8), [&](int64_t lo, int64_t hi) {
                   context.table->exact_pack(
                       product.right(i, lo * kPackColumns, (hi - lo) * kPackColumns, true));
                 });
    parallel_for(context.parallel, product.n_blocks(), 1, [&](int64_t lo, int64_t hi) {
      for (int64_t block = lo; block < hi; ++block)
        product.run_block(i, block, true);
    });
  }
}

}  // namespace

int64_t exact_product_bytes(const ExactProductArgs& args) {
  return packs_right(args) ? exact_panels_bytes(args.type, args.k, args.n) : 0;
}

void exact_product(const Context& context, const ExactProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (packs_right(args)) return multiply_packed(context, args);
  const Product product(context, args, kColumns);
  const int64_t n_blocks = product.n_blocks();
  const int64_t products =
      std::min(kExactRows, args.m) * std::min(kColumns, args.n) * std::max<int64_t>(1, args.k);
  parallel_for(context.parallel, n_blocks * static_cast<int64_t>(args.a_starts.size()),
               std::max<int64_t>(1, kGrainProducts / products), [&](int64_t lo, int64_t hi) {
                 for (int64_t unit = lo; unit < hi; ++unit)
                   product.run_block(unit / n_blocks, unit % n_blocks, false);
               });
}

}  // namespace tenon::onednn::kernels

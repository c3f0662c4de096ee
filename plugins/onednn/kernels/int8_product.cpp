// SPDX-License-Identifier: Apache-2.0
#include "int8_product.h"

#include <algorithm>
#include <array>

#include "epilogue_block.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

constexpr int64_t kRowInt8 = 65536;  // 128 KiB of stack a thread, a quarter of an L2
constexpr int64_t kMostRows = 96;
constexpr int64_t kWholeRows = 12;    // what all levels multiply at once
constexpr int64_t kUnitColumns = 64;  // at least, so that widening the rows is cheap beside
constexpr int64_t kGrainProducts = int64_t{1} << 20;

struct Cutting {
  int64_t rows = 0;      // of a block
  int64_t n_blocks = 0;  // of rows
  int64_t panels = 0;    // of a unit
  int64_t n_parts = 0;   // of the columns
};

Cutting cut(const Int8ProductArgs& args, int64_t pairs) {
  Cutting made;
  made.rows = std::clamp<int64_t>(kRowInt8 / std::max<int64_t>(1, 2 * pairs), 1, kMostRows);
  if (made.rows > kWholeRows) made.rows -= made.rows % kWholeRows;
  made.n_blocks = (args.m + made.rows - 1) / made.rows;
  // Blocks of about the same size, so that no thread waits for another.
  const int64_t even = (args.m + made.n_blocks - 1) / made.n_blocks;
  made.rows = std::min(made.rows, (even + kWholeRows - 1) / kWholeRows * kWholeRows);
  const int64_t panels = packed_columns(args.n) / kInt8Panel;
  // Enough units for many threads: with few blocks of rows the columns are cut too, and each
  // thread has its own columns of all rows.
  const int64_t least = kUnitColumns / kInt8Panel;
  const int64_t wanted = std::max<int64_t>(1, 16 / made.n_blocks);
  made.panels = std::clamp((panels + wanted - 1) / wanted, std::min(least, panels), panels);
  made.n_parts = (panels + made.panels - 1) / made.panels;
  return made;
}

class Rows {
 public:
  Rows(const Context& context, const Int8ProductArgs& args, int64_t pairs, int16_t* to)
      : table_(*context.table), args_(args), pairs_(pairs), to_(to) {}

  // Rows [first, first + count), each of 2 * pairs numbers.
  void widen(int64_t first, int64_t count) const {
    const Int8Rows& a = args_.a;
    const bool is_whole = !a.has_windows && a.stride == args_.k && args_.k == 2 * pairs_;
    if (is_whole) return take(a.quantized + first * a.stride, count * args_.k, to_);
    for (int64_t row = 0; row < count; ++row) {
      int16_t* const to = to_ + row * 2 * pairs_;
      if (a.has_windows)
        window(first + row, to);
      else
        take(a.quantized + (first + row) * a.stride, args_.k, to);
      if (args_.k % 2 != 0) to[args_.k] = 0;
    }
  }

 private:
  void take(const uint8_t* quantized, int64_t n, int16_t* to) const {
    table_.widen_int8(quantized, args_.a.is_signed, args_.a.zero, n, to);
  }

  void window(int64_t place, int16_t* to) const {
    const ConvWindows& w = args_.a.windows;
    const int64_t left = place % w.out_width * w.stride_x - w.pad_left;
    const int64_t top = place / w.out_width % w.out_height * w.stride_y - w.pad_top;
    const int64_t image = place / (w.out_width * w.out_height);
    const uint8_t* const quantized = args_.a.quantized + image * w.height * w.width * w.pixel;
    walk_window(w, top, left, [&](int64_t first, int64_t n) {
      if (first == kOutside)
        std::fill_n(to, n * w.channels, int16_t{0});
      else
        pixels(quantized + first * w.pixel, n, to);
      to += n * w.channels;
    });
  }

  void pixels(const uint8_t* quantized, int64_t n, int16_t* to) const {
    const ConvWindows& w = args_.a.windows;
    if (w.pixel == w.channels) return take(quantized, n * w.channels, to);
    for (int64_t i = 0; i < n; ++i)
      take(quantized + i * w.pixel, w.channels, to + i * w.channels);
  }

  const KernelTable& table_;
  const Int8ProductArgs& args_;
  int64_t pairs_;
  int16_t* to_;
};

// What the right operand's zero point takes from the sums of each row.
void shift_rows(
    const int16_t* rows, int64_t count, int64_t width, int32_t b_zero, int32_t* shifts) {
  for (int64_t row = 0; row < count; ++row) {
    uint32_t sum = 0;  // wraps
    for (int64_t k = 0; k < width; ++k)
      sum += static_cast<uint32_t>(int32_t{rows[row * width + k]});
    shifts[row] = static_cast<int32_t>(0U - sum * static_cast<uint32_t>(b_zero));
  }
}

void run_units(const Context& context,
               const Int8ProductArgs& args,
               const Cutting& cutting,
               int64_t lo,
               int64_t hi) {
  const int64_t pairs = (args.k + 1) / 2;
  alignas(64) std::array<int16_t, kRowInt8> wide;
  std::array<int32_t, kMostRows> shifts{};
  const Rows rows(context, args, pairs, wide.data());
  int64_t widened = -1;
  for (int64_t unit = lo; unit < hi; ++unit) {
    const int64_t block = unit % cutting.n_blocks;
    const int64_t first_row = block * cutting.rows;
    const int64_t first_panel = unit / cutting.n_blocks * cutting.panels;
    const int64_t first_column = first_panel * kInt8Panel;
    Int8Block call;
    call.n_rows = std::min(cutting.rows, args.m - first_row);
    if (block != widened) {
      rows.widen(first_row, call.n_rows);
      if (args.b_zero != 0)
        shift_rows(wide.data(), call.n_rows, 2 * pairs, args.b_zero, shifts.data());
      widened = block;
    }
    call.rows = wide.data();
    call.pairs = pairs;
    call.panels = args.b + first_column * 2 * pairs;
    call.row_shifts = shifts.data();
    call.epilogue = epilogue_of_block(args, first_row, first_column, cutting.panels * kInt8Panel);
    context.table->int8_block(call);
  }
}

}  // namespace

void pack_int8(const uint8_t* b,
               int64_t k_stride,
               int64_t n_stride,
               int64_t k,
               int64_t n,
               uint8_t flip,
               int8_t* packed) {
  const int64_t pairs = (k + 1) / 2;
  std::fill_n(packed, packed_int8_bytes(k, n), int8_t{0});
  for (int64_t column = 0; column < n; ++column) {
    int8_t* const to =
        packed + column / kInt8Panel * kInt8Panel * 2 * pairs + column % kInt8Panel * 2;
    for (int64_t i = 0; i < k; ++i) {
      const uint8_t quantized = b[i * k_stride + column * n_stride] ^ flip;
      to[i / 2 * kInt8Panel * 2 + i % 2] = static_cast<int8_t>(quantized);
    }
  }
}

void int8_product(const Context& context, const Int8ProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Cutting cutting = cut(args, (args.k + 1) / 2);
  const int64_t products = cutting.rows * cutting.panels * kInt8Panel * args.k;
  parallel_for(context.parallel, cutting.n_blocks * cutting.n_parts,
               std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, products)),
               [&](int64_t lo, int64_t hi) { run_units(context, args, cutting, lo, hi); });
}

}  // namespace tenon::onednn::kernels

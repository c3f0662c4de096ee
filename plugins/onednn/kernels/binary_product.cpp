// SPDX-License-Identifier: Apache-2.0
#include "binary_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "epilogue_block.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

constexpr int64_t kMostRows = 48;
constexpr int64_t kWholeRows = 4;  // what a tile multiplies at once
constexpr int64_t kRowWords = kMostBinaryWords * kWholeRows;
constexpr int64_t kUnitPanels = 4;  // what a tile has at most
constexpr int64_t kGrainWords = int64_t{1} << 17;

struct Cutting {
  int64_t rows = 0;      // of a block
  int64_t n_blocks = 0;  // of rows
  int64_t panels = 0;    // of a unit
  int64_t n_parts = 0;   // of the columns
};

Cutting cut(const BinaryProductArgs& args) {
  Cutting made;
  made.rows = std::clamp<int64_t>(kRowWords / std::max<int64_t>(1, args.words), 1, kMostRows);
  if (made.rows > kWholeRows) made.rows -= made.rows % kWholeRows;
  made.rows = std::min(made.rows, args.m);
  made.n_blocks = (args.m + made.rows - 1) / made.rows;
  const int64_t panels = packed_binary_columns(args.n) / kBinaryPanel;
  const int64_t wanted = std::max<int64_t>(1, 8 / made.n_blocks);
  const int64_t share = (panels + wanted - 1) / wanted;
  made.panels = std::min(panels, (share + kUnitPanels - 1) / kUnitPanels * kUnitPanels);
  made.n_parts = (panels + made.panels - 1) / made.panels;
  return made;
}

// A call of memcpy takes longer than a pixel's few words.
[[gnu::optimize("no-tree-loop-distribute-patterns")]] void copy_words(const uint32_t* from,
                                                                      int64_t count,
                                                                      uint32_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i];
}

// What the windows of places side by side see, each in a row.
void gather(const BinaryProductArgs& args, int64_t first, int64_t count, uint32_t* to) {
  const ConvWindows& w = args.windows;
  int64_t x = first % w.out_width, y = first / w.out_width % w.out_height;
  int64_t image = first / (w.out_width * w.out_height);
  for (int64_t row = 0; row < count; ++row) {
    const uint32_t* const signs = args.a + image * w.height * w.width * w.pixel;
    const int64_t top = y * w.stride_y - w.pad_top, left = x * w.stride_x - w.pad_left;
    walk_window(w, top, left, [&](int64_t pixel, int64_t n) {
      if (pixel == kOutside)
        std::fill_n(to, n * w.channels, 0U);
      else
        copy_words(signs + pixel * w.pixel, n * w.channels, to);
      to += n * w.channels;
    });
    if (++x < w.out_width) continue;
    x = 0;
    if (++y < w.out_height) continue;
    y = 0;
    ++image;
  }
}

// Rows side by side, where they lie or gathered.
const uint32_t* taken_rows(const BinaryProductArgs& args,
                           int64_t first,
                           int64_t count,
                           uint32_t* to) {
  const uint32_t* const from = args.a + first * args.a_stride;
  if (!args.has_windows && args.a_stride == args.words) return from;
  if (args.has_windows)
    gather(args, first, count, to);
  else
    for (int64_t row = 0; row < count; ++row)
      copy_words(from + row * args.a_stride, args.words, to + row * args.words);
  return to;
}

void run_units(const Context& context,
               const BinaryProductArgs& args,
               const Cutting& cutting,
               int64_t lo,
               int64_t hi) {
  std::array<uint32_t, kRowWords> memory;
  std::array<const int32_t*, kMostRows> shifts{};
  const int64_t padded = packed_binary_columns(args.n);
  const int64_t places = args.windows.out_height * args.windows.out_width;
  const uint32_t* rows = nullptr;
  int64_t held = -1;
  for (int64_t unit = lo; unit < hi; ++unit) {
    const int64_t block = unit % cutting.n_blocks;
    const int64_t first_row = block * cutting.rows;
    const int64_t first_column = unit / cutting.n_blocks * cutting.panels * kBinaryPanel;
    BinaryBlock call;
    call.n_rows = std::min(cutting.rows, args.m - first_row);
    if (block != held) rows = taken_rows(args, first_row, call.n_rows, memory.data());
    held = block;
    for (int64_t row = 0; row < call.n_rows; ++row) {
      const int64_t kind = args.places != nullptr ? args.places[(first_row + row) % places] : 0;
      shifts[static_cast<size_t>(row)] = args.shifts + kind * padded + first_column;
    }
    call.rows = rows;
    call.words = args.words;
    call.panels = args.b + first_column * args.words;
    call.shifts = shifts.data();
    call.has_popcount = args.with_popcount && has_popcount(context);
    call.epilogue = epilogue_of_block(args, first_row, first_column, cutting.panels * kBinaryPanel);
    context.table->binary_block(call);
  }
}

// Which pixels of the window lie outside at a place, in its order.
std::vector<bool> outside_of(const Windows& w, int64_t place) {
  std::vector<bool> outside;
  const int64_t left = place % w.out_width * w.stride_x - w.pad_left;
  const int64_t top = place / w.out_width * w.stride_y - w.pad_top;
  walk_window(w, top, left, [&](int64_t first, int64_t n) {
    outside.insert(outside.end(), static_cast<size_t>(n), first == kOutside);
  });
  return outside;
}

}  // namespace

void pack_binary(const uint32_t* b, int64_t n, int64_t words, uint32_t* packed) {
  std::fill_n(packed, packed_binary_columns(n) * words, 0U);
  for (int64_t column = 0; column < n; ++column) {
    uint32_t* const to =
        packed + column / kBinaryPanel * kBinaryPanel * words + column % kBinaryPanel;
    for (int64_t word = 0; word < words; ++word)
      to[word * kBinaryPanel] = b[column * words + word];
  }
}

// A pixel of c signs outside has no bit set: with b it gives c - 2 popcount(b) where 0 is meant, so
// the sum begins with 2 popcount(b) in place of c.
BorderShifts border_shifts(const ConvWindows& windows,
                           int64_t channels,
                           const uint32_t* b,
                           int64_t n) {
  const int64_t padded = packed_binary_columns(n), each = windows.channels;
  const int64_t taps = windows.window_height * windows.window_width;
  std::map<std::vector<bool>, uint16_t> kinds;
  BorderShifts made;
  for (int64_t place = 0; place < windows.out_height * windows.out_width; ++place) {
    const std::vector<bool> outside = outside_of(windows, place);
    const auto [kind, is_new] = kinds.try_emplace(outside, static_cast<uint16_t>(kinds.size()));
    made.places.push_back(kind->second);
    if (!is_new) continue;
    const size_t begin = made.shifts.size();
    made.shifts.resize(begin + static_cast<size_t>(padded));
    for (int64_t column = 0; column < n; ++column) {
      int64_t sum = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        if (!outside[static_cast<size_t>(tap)]) {
          sum += channels;
          continue;
        }
        const uint32_t* const signs = b + (column * taps + tap) * each;
        for (int64_t word = 0; word < each; ++word)
          sum += int64_t{2} * std::popcount(signs[word]);
      }
      made.shifts[begin + static_cast<size_t>(column)] = static_cast<int32_t>(sum);
    }
  }
  return made;
}

void binary_product(const Context& context, const BinaryProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Cutting cutting = cut(args);
  const int64_t words = cutting.rows * cutting.panels * kBinaryPanel * args.words;
  parallel_for(context.parallel, cutting.n_blocks * cutting.n_parts,
               std::max<int64_t>(1, kGrainWords / std::max<int64_t>(1, words)),
               [&](int64_t lo, int64_t hi) { run_units(context, args, cutting, lo, hi); });
}

void pack_signs(const Context& context, const SignsArgs& args, int64_t rows) {
  parallel_for(context.parallel, rows, grain_rows(args.channels * 4),
               [&](int64_t lo, int64_t hi) { context.table->sign_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels

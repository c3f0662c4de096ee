// SPDX-License-Identifier: Apache-2.0
#include "tile_product.h"

#include <algorithm>
#include <cstring>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenon::onednn::kernels {
namespace {

// Of the 2 MiB of L2 of CPUs with tiles: the panels of a unit stay there while the rows pass.
constexpr int64_t kUnitRowBytes = 576 << 10;
constexpr int64_t kUnitPanelBytes = 1152 << 10;
constexpr int64_t kTapPanelBytes = 576 << 10;  // of a unit that has planes beside them
constexpr int64_t kUnits = 8;                  // of work, so that threads end together
constexpr int64_t kLeastBlocks = 4;            // of rows of a unit
constexpr int64_t kLeastWindowPanels = 8;      // of a unit that gathers its rows
constexpr int64_t kGroupRows = 4;              // units of rows that go through the same panels
constexpr int64_t kGroups = 2;                 // of rows at least, where threads divide them
constexpr int64_t kLeastLines = 4;  // of a unit, which first makes the lines that they share
// Of one thread, some 4 us: a step of k of a block takes 30 ns, and a block's epilogue as three
// steps.
constexpr int64_t kGrainSteps = 128;
constexpr int64_t kLeastUnitSteps = 64;  // less work is not cut into kUnits
constexpr int64_t kEpilogueSteps = 3;

// Linux: the tiles' data, one bit of the extended state.
constexpr int kRequestPermission = 0x1023;
constexpr int kTileData = 18;

bool request_tiles() {
  if (best_level() != Level::kAvx512 || !instructions().avx512_bf16) return false;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24, kInt8 = 1U << 25;
  constexpr unsigned kAll = kBf16 | kTiles | kInt8;
  return (edx & kAll) == kAll && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr int64_t parts(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

int64_t steps_of(int64_t rows, int64_t panels, int64_t depth) {
  return std::max<int64_t>(1,
                           parts(rows, kTileRows) * panels * (depth / kTileDepth + kEpilogueSteps));
}
// How many units of so many rows and panels are worth a thread.
int64_t grain_of(int64_t rows, int64_t panels, int64_t depth) {
  return std::max<int64_t>(1, kGrainSteps / steps_of(rows, panels, depth));
}

struct Cutting {
  int64_t n_blocks = 0;  // of rows
  int64_t n_rows = 0;    // units side by side, which differ by a block at most
  int64_t panels = 0;    // of a unit
  int64_t n_parts = 0;   // of the panels
  int64_t group = 0;     // units of rows, at most, that go through the panels together

  int64_t first_row(int64_t unit) const { return unit * n_blocks / n_rows * kTileRows; }
};

Cutting cut(const TileProductArgs& args) {
  Cutting made;
  const int64_t row_bytes = tile_depth_bytes(args.type, args.k);
  const int64_t fits = std::max<int64_t>(1, kUnitRowBytes / row_bytes / kTileRows);
  made.n_blocks = parts(args.m, kTileRows);
  const int64_t panels = parts(args.n, kTilePanel);
  const int64_t steps = steps_of(args.m, panels, row_bytes);
  const int64_t units = std::clamp<int64_t>(steps / kLeastUnitSteps, 1, kUnits);
  made.n_rows =
      std::max(parts(made.n_blocks, fits), std::min(units, parts(made.n_blocks, kLeastBlocks)));
  int64_t most = std::max<int64_t>(1, kUnitPanelBytes / row_bytes / kTilePanel);
  if (row_bytes > kTilePiece) most = std::min(most, kTileUnitPanels);
  const int64_t least = args.row == TileRow::kWindow ? kLeastWindowPanels : 1;
  const int64_t wanted = std::min(parts(units, made.n_rows), std::max<int64_t>(1, panels / least));
  const int64_t n_parts = std::max(wanted, parts(panels, most));
  made.panels = parts(panels, n_parts);
  made.n_parts = parts(panels, made.panels);
  const bool has_own_rows = divides_tile_rows(args.m, args.n, args.k);
  made.group = has_own_rows ? std::min(kGroupRows, parts(made.n_rows, kGroups)) : kGroupRows;
  return made;
}

// Groups of rows one after the other, so that a thread finds its rows in its own cache in the next
// layer; in a group, panels after panels, which then come from memory once.
TileUnit unit_of(const TileProductArgs& args, const Cutting& cutting, int64_t unit) {
  const int64_t in_group = cutting.group * cutting.n_parts;
  const int64_t first = unit / in_group * cutting.group;
  const int64_t n_rows = std::min(cutting.group, cutting.n_rows - first);
  const int64_t at = unit % in_group;
  const int64_t part = first + at % n_rows;
  const int64_t row = cutting.first_row(part);
  const int64_t panel = at / n_rows * cutting.panels;
  return {.row = row,
          .n_rows = std::min(cutting.first_row(part + 1), args.m) - row,
          .panel = panel,
          .n_panels = std::min(cutting.panels, parts(args.n, kTilePanel) - panel),
          .depth = tile_depth_bytes(args.type, args.k)};
}

// How many lines of the result the interleaved ones of a unit are enough for.
int64_t lines_of_unit(const TileLines& w) {
  const int64_t groups = kLineGroupBytes / line_group_bytes(w);
  if (!w.is_shared()) return groups / w.steps;
  return groups < w.steps ? 0 : (groups - w.steps) / w.advance() + 1;
}

// Some lines of the result times all panels: the windows' lines are interleaved once.
void multiply_lines(const Context& context, const TileProductArgs& args) {
  const TileLines& w = args.lines;
  const int64_t n_images = args.m / (w.out_height * w.out_width);
  const int64_t even = parts(w.out_height, parts(kUnits, n_images));
  const int64_t most = std::min(lines_of_unit(w), std::max<int64_t>(even, kLeastLines));
  const int64_t lines = parts(w.out_height, parts(w.out_height, most));
  const int64_t n_parts = parts(w.out_height, lines);
  const int64_t n_panels = parts(args.n, kTilePanel);
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t unit = lo; unit < hi; ++unit) {
      const int64_t line = unit % n_parts * lines;
      amx::tile_unit(args, {.row = (unit / n_parts * w.out_height + line) * w.out_width,
                            .n_rows = std::min(lines, w.out_height - line) * w.out_width,
                            .panel = 0,
                            .n_panels = n_panels,
                            .depth = w.steps * kTileDepth});
    }
  };
  parallel_for(context.parallel, n_images * n_parts,
               grain_of(lines * w.out_width, n_panels, w.steps * kTileDepth), run);
}

// The lines of a unit whose planes are small enough, at most.
int64_t lines_of_unit(const TileTaps& w) {
  const int64_t lines = kTapBytes / (w.stride_y * w.stride_x) / (w.line() * w.pixel_bytes) - 1;
  return std::min(lines - (w.y.last - w.y.first), w.out_height);
}

// Some lines of the result times as many panels as leave room for them in L2.
void multiply_taps(const Context& context, const TileProductArgs& args) {
  const TileTaps& w = args.taps;
  const int64_t depth = w.count() * w.pixel_bytes;
  const int64_t n_panels = parts(args.n, kTilePanel);
  const int64_t fits = std::max<int64_t>(1, kTapPanelBytes / depth / kTilePanel);
  const int64_t panels = parts(n_panels, parts(n_panels, fits));
  const int64_t n_panel_parts = parts(n_panels, panels);
  const int64_t n_images = args.m / (w.out_height * w.out_width);
  const int64_t even = parts(w.out_height, parts(kUnits / 2, n_images * n_panel_parts));
  const int64_t most = std::min(lines_of_unit(w), std::max<int64_t>(even, kLeastLines));
  const int64_t lines = parts(w.out_height, parts(w.out_height, most));
  const int64_t n_parts = parts(w.out_height, lines);
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t unit = lo; unit < hi; ++unit) {
      const int64_t panel = unit / (n_images * n_parts) * panels;
      const int64_t of_panel = unit % (n_images * n_parts);
      const int64_t line = of_panel % n_parts * lines;
      const int64_t count = std::min(lines, w.out_height - line);
      amx::tile_unit(args, {.row = (of_panel / n_parts * w.out_height + line) * w.out_width,
                            .n_rows = count * w.line() - w.gap(),
                            .panel = panel,
                            .n_panels = std::min(panels, n_panels - panel),
                            .depth = depth,
                            .lines = count});
    }
  };
  parallel_for(context.parallel, n_images * n_parts * n_panel_parts,
               grain_of(lines * w.line(), panels, depth), run);
}

template <class T>
void pack(const T* b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n, T* to) {
  constexpr int64_t kGroup = 4 / sizeof(T);  // elements of k side by side
  constexpr int64_t kDepth = kTileDepth / sizeof(T);
  const int64_t depth = parts(k, kDepth) * kDepth;
  std::memset(to, 0, static_cast<size_t>(depth * tile_columns(n)) * sizeof(T));
  for (int64_t column = 0; column < n; ++column) {
    const int64_t tile = column % kTilePanel / 16;
    T* const panel =
        to + column / kTilePanel * kTilePanel * depth + tile * 16 * kDepth + column % 16 * kGroup;
    for (int64_t i = 0; i < k; ++i)
      panel[i / kDepth * kTilePanel * kDepth + i % kDepth / kGroup * 16 * kGroup + i % kGroup] =
          b[i * k_stride + column * n_stride];
  }
}

}  // namespace

bool has_tiles() {
  static const bool kHas = request_tiles();
  return kHas;
}

TileLines tile_lines(const Windows& windows, int64_t channels, ElementType source) {
  constexpr int64_t kInterleavedBytes = 16;  // of a pixel of all interleaved lines, at most
  TileLines lines;
  static_cast<Windows&>(lines) = windows;
  lines.source = source;
  lines.channels = channels;
  lines.plane = windows.height * windows.width;
  lines.image = channels * lines.plane;
  const int64_t pixels = kTileDepth / lines.pixel_bytes();
  lines.interleaved = kInterleavedBytes / lines.pixel_bytes();
  while (lines.interleaved > 1 && lines.interleaved * windows.window_width > pixels)
    lines.interleaved /= 2;
  lines.steps = parts(windows.window_height, lines.interleaved);
  return lines;
}

bool takes_tile_lines(const TileLines& lines) {
  return lines.step_x == 1 && lines.step_y == 1 && lines.channels <= kLineChannels &&
         lines.window_width <= kTileDepth / lines.pixel_bytes() && lines.steps <= kMostLineSteps &&
         lines_of_unit(lines) > 0;
}

TileTaps tile_taps(const Windows& windows, int64_t pixel_bytes) {
  TileTaps taps;
  static_cast<Windows&>(taps) = windows;
  taps.pixel_bytes = pixel_bytes;
  auto range = [](int64_t window, int64_t step, int64_t pad, int64_t stride) {
    const int64_t first = tap_place(-pad, stride).at;
    TileTaps::Range of_taps{first, first};
    for (int64_t i = 0; i < window; ++i)
      of_taps.last = std::max(of_taps.last, tap_place(i * step - pad, stride).at);
    return of_taps;
  };
  taps.y = range(windows.window_height, windows.step_y, windows.pad_top, windows.stride_y);
  taps.x = range(windows.window_width, windows.step_x, windows.pad_left, windows.stride_x);
  taps.has_common_padding = windows.out_width * windows.stride_x >= windows.width;
  return taps;
}

bool takes_tile_taps(const TileTaps& taps) {
  return taps.pixel_bytes % kTileDepth == 0 && taps.count() <= kMostTaps && taps.pad_left >= 0 &&
         taps.pad_top >= 0 && taps.gap() <= taps.out_width && lines_of_unit(taps) > 0;
}

int64_t tile_line_element(const TileLines& lines, int64_t k) {
  const int64_t in_step = kTileDepth * kLineChannels / lines.pixel_bytes();
  const int64_t channel = k % kLineChannels;
  const int64_t at = k % in_step / kLineChannels;
  const int64_t line = k / in_step * lines.interleaved + at % lines.interleaved;
  const int64_t pixel = at / lines.interleaved;
  const bool is_seen =
      channel < lines.channels && line < lines.window_height && pixel < lines.window_width;
  return is_seen ? (line * lines.window_width + pixel) * lines.channels + channel : kOutside;
}

void pack_tiles(ElementType type,
                const void* b,
                int64_t k_stride,
                int64_t n_stride,
                int64_t k,
                int64_t n,
                void* packed) {
  if (type == ElementType::kBf16)
    pack(static_cast<const uint16_t*>(b), k_stride, n_stride, k, n, static_cast<uint16_t*>(packed));
  else
    pack(static_cast<const uint8_t*>(b), k_stride, n_stride, k, n, static_cast<uint8_t*>(packed));
}

void tile_product(const Context& context, const TileProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.row == TileRow::kLines) return multiply_lines(context, args);
  if (args.row == TileRow::kTaps) return multiply_taps(context, args);
  const Cutting cutting = cut(args);
  const int64_t rows = parts(cutting.n_blocks, cutting.n_rows) * kTileRows;
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t unit = lo; unit < hi; ++unit)
      amx::tile_unit(args, unit_of(args, cutting, unit));
  };
  parallel_for(context.parallel, cutting.n_rows * cutting.n_parts,
               grain_of(rows, cutting.panels, tile_depth_bytes(args.type, args.k)), run);
}

}  // namespace tenon::onednn::kernels

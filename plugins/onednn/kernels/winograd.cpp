// SPDX-License-Identifier: Apache-2.0
// Cuts the work of winograd.h so that transformed tiles stay in the caches of the cores.

#include "winograd.h"

#include <algorithm>
#include <cstring>

#include "kernel_table.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kBlockTiles = 4 * kWinogradRows;      // whose products wait for each other
constexpr int64_t kConvolveBytes = int64_t{256} << 10;  // of transformed tiles of one worker
constexpr int64_t kGradientBytes = int64_t{8} << 20;    // of all workers: in their common cache
constexpr int64_t kLine = 16;  // words; keeps planes from falling on the same lines of a cache

int64_t round_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

Winograd::Winograd(const WinogradShape& shape, ElementType type, int workers)
    : shape_(shape), type_(type), word_(type == ElementType::kBf16 ? 2 : 1), workers_(workers) {}

bool Winograd::is_fast(ElementType type, Level level) {
  if (level != Level::kAvx512) return false;
  if (type == ElementType::kF32) return true;
  return type == ElementType::kBf16 && instructions().avx512_bf16 && !instructions().amx_bf16;
}

int64_t Winograd::packed_bytes() const {
  return kWinogradPlanes * packed_plane() * 4;
}

int64_t Winograd::packed_plane() const {
  return words(shape_.in) * winograd_columns(shape_.out) + kLine;
}

// As many as fill the cache, the same for every worker.
Winograd::Chunks Winograd::convolve_chunks() const {
  const int64_t tile_bytes = kWinogradPlanes * shape_.in * element_bytes(type_);
  const int64_t wanted = std::clamp(kConvolveBytes / tile_bytes, 4 * kBlockTiles, 32 * kBlockTiles);
  const int64_t rounds = (shape_.tiles() + wanted * workers_ - 1) / (wanted * workers_);
  const int64_t chunks = rounds * workers_;
  const int64_t tiles = round_up((shape_.tiles() + chunks - 1) / chunks, kWinogradRows);
  return {tiles, (shape_.tiles() + tiles - 1) / tiles};
}

int64_t Winograd::convolve_bytes() const {
  const int64_t plane = convolve_chunks().tiles * words(shape_.in) + kLine;
  const int64_t products = kWinogradPlanes * kBlockTiles * kWinogradColumns;
  return (workers_ * (kWinogradPlanes * plane + products) + shape_.in) * 4;
}

int64_t Winograd::gradient_tiles() const {
  const int64_t bytes = kWinogradPlanes * (shape_.in + shape_.out) * element_bytes(type_);
  const int64_t tiles = std::clamp<int64_t>(kGradientBytes / bytes, 128, 2048);
  return round_up(std::min(tiles, shape_.tiles()), 2);
}

int64_t Winograd::gradient_bytes() const {
  const int64_t rows = winograd_rows(shape_.out);
  const int64_t row = winograd_columns(shape_.in) + round_up(rows, kLine);
  const int64_t planes = words(gradient_tiles()) * row + 2 * kLine;
  const int64_t zeros = std::max(shape_.in, shape_.out);
  return (kWinogradPlanes * (planes + rows * shape_.in) + zeros) * 4;
}

void Winograd::pack(const Context& context,
                    const float* weights,
                    const WinogradWeights& strides,
                    bool is_flipped,
                    void* packed) const {
  const WinogradPack args{.in = shape_.in,
                          .out = shape_.out,
                          .in_stride = strides.in,
                          .out_stride = strides.out,
                          .tap_stride = strides.tap,
                          .is_flipped = is_flipped,
                          .type = type_,
                          .weights = weights,
                          .packed = packed,
                          .plane = packed_plane()};
  // Neighbours in memory one after the other.
  const bool by_out = strides.out > strides.in;
  const int64_t ins = shape_.in / kWinogradUnit;
  const int64_t outs = shape_.out / kWinogradUnit;
  const int64_t inner = by_out ? ins : outs;
  parallel_for(context.parallel, ins * outs, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t in = by_out ? i % inner : i / inner;
      const int64_t out = by_out ? i / inner : i % inner;
      context.table->winograd_pack(args, in * kWinogradUnit, out * kWinogradUnit);
    }
  });
}

void Winograd::convolve_chunk(const Context& context,
                              const Operands& operands,
                              const float* zeros,
                              float* planes,
                              int64_t chunk) const {
  const Chunks chunks = convolve_chunks();
  const int64_t row = words(shape_.in);
  const int64_t plane = chunks.tiles * row + kLine;
  const int64_t first = chunk * chunks.tiles;
  const int64_t last = std::min(first + chunks.tiles, shape_.tiles());
  context.table->winograd_transform({.shape = shape_,
                                     .type = type_,
                                     .image = operands.src,
                                     .zeros = zeros,
                                     .planes = planes,
                                     .first = first,
                                     .row = row,
                                     .plane = plane},
                                    first, last);
  WinogradConvolve block{.shape = shape_,
                         .type = type_,
                         .row = row,
                         .plane = plane,
                         .packed = operands.packed,
                         .packed_plane = packed_plane(),
                         .bias = operands.bias,
                         .add = operands.add,
                         .relu = operands.relu,
                         .dst = operands.dst,
                         .products = planes + kWinogradPlanes * plane};
  for (int64_t tile = first; tile < last; tile += kBlockTiles) {
    block.planes = planes + (tile - first) * row;
    context.table->winograd_convolve(block, tile, std::min(kBlockTiles, last - tile));
  }
}

void Winograd::convolve(const Context& context, const Operands& operands, void* scratch) const {
  const Chunks chunks = convolve_chunks();
  const int64_t planes = kWinogradPlanes * (chunks.tiles * words(shape_.in) + kLine) +
                         kWinogradPlanes * kBlockTiles * kWinogradColumns;
  float* zeros = static_cast<float*>(scratch);
  std::memset(zeros, 0, static_cast<size_t>(shape_.in) * 4);
  parallel_for(context.parallel, workers_, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t worker = lo; worker < hi; ++worker) {
      for (int64_t chunk = worker; chunk < chunks.count; chunk += workers_)
        convolve_chunk(context, operands, zeros, zeros + shape_.in + worker * planes, chunk);
    }
  });
}

// The scratch memory of a gradient, cut up.
struct Winograd::Gradient {
  WinogradTransform source = {}, result = {};  // of a part of the tiles
  float* sources = nullptr;
  float* results = nullptr;
  float* sums = nullptr;  // [16][rows][in]
  int64_t tiles = 0;      // of a part
  int64_t rows = 0;
};

Winograd::Gradient Winograd::cut_gradient(const void* src,
                                          const void* dst_gradient,
                                          void* scratch) const {
  Gradient g{.tiles = gradient_tiles(), .rows = winograd_rows(shape_.out)};
  const int64_t zero_words = std::max(shape_.in, shape_.out);
  float* const zeros = static_cast<float*>(scratch);
  std::memset(zeros, 0, static_cast<size_t>(zero_words) * 4);
  g.source = {.shape = shape_, .type = type_, .image = src, .zeros = zeros, .by_tiles = true};
  g.result = g.source;
  g.source.row = kWinogradColumns;
  g.source.block = words(g.tiles) * kWinogradColumns;
  g.source.plane = words(g.tiles) * winograd_columns(shape_.in) + kLine;
  g.result.side = WinogradSide::kResult;
  g.result.image = dst_gradient;
  g.result.row = round_up(g.rows, kLine);  // or stores would cross lines
  g.result.plane = words(g.tiles) * g.result.row + kLine;
  g.sources = zeros + zero_words;
  g.results = g.sources + kWinogradPlanes * g.source.plane;
  g.sums = g.results + kWinogradPlanes * g.result.plane;
  g.source.planes = g.sources;
  g.result.planes = g.results;
  return g;
}

// Products of one part, cut into planes and blocks of input channels.
void Winograd::add_products(const Context& context,
                            const Gradient& g,
                            int64_t tiles,
                            bool accumulates) const {
  const int64_t blocks = winograd_columns(shape_.in) / kWinogradColumns;
  parallel_for(context.parallel, kWinogradPlanes * blocks, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t unit = lo; unit < hi; ++unit) {
      const int64_t plane = unit / blocks;
      const int64_t block = unit % blocks;
      const int64_t column = block * kWinogradColumns;
      context.table->winograd_product(
          {.type = type_,
           .a = g.results + plane * g.result.plane,
           .a_row = 1,
           .a_step = g.result.row,
           .b = g.sources + plane * g.source.plane + block * g.source.block,
           .b_step = kWinogradColumns,
           .c = g.sums + plane * g.rows * shape_.in + column,
           .c_row = shape_.in,
           .rows = g.rows,
           .columns = std::min(kWinogradColumns, shape_.in - column),
           .depth = words(tiles),
           .accumulates = accumulates});
    }
  });
}

void Winograd::weight_gradient(const Context& context,
                               const void* src,
                               const void* dst_gradient,
                               float* gradient,
                               const WinogradWeights& strides,
                               void* scratch) const {
  Gradient g = cut_gradient(src, dst_gradient, scratch);
  for (int64_t first = 0; first < shape_.tiles(); first += g.tiles) {
    const int64_t count = round_up(std::min(g.tiles, shape_.tiles() - first), word_);
    g.source.first = g.result.first = first;
    constexpr int64_t kGrain = 16;
    parallel_for(context.parallel, words(count), kGrain, [&](int64_t lo, int64_t hi) {
      context.table->winograd_transform(g.source, first + lo * word_, first + hi * word_);
      context.table->winograd_transform(g.result, first + lo * word_, first + hi * word_);
    });
    add_products(context, g, count, first > 0);
  }
  const WinogradFinish finish{.in = shape_.in,
                              .out = shape_.out,
                              .sums = g.sums,
                              .plane = g.rows * shape_.in,
                              .gradient = gradient,
                              .in_stride = strides.in,
                              .out_stride = strides.out,
                              .tap_stride = strides.tap};
  parallel_for(context.parallel, shape_.out, 1,
               [&](int64_t lo, int64_t hi) { context.table->winograd_finish(finish, lo, hi); });
}

}  // namespace tenon::onednn::kernels

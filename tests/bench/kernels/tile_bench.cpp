// SPDX-License-Identifier: Apache-2.0
// Products of 8 bits on AMX tiles, one thread: pointwise convolutions of ResNet-50 with and without
// a residual, products of MiniLM, first convolutions, also in bf16.

#include <algorithm>
#include <new>
#include <vector>

#include "bench.h"
#include "kernels/bf16x6_product.h"
#include "kernels/tile_product.h"

namespace tenon::onednn::kernels::bench {
namespace {

// On lines of the cache, as the operands of a plan are: tiles load a row that lies across two of
// them three times as slowly.
template <class T>
struct OnLines {
  using value_type = T;
  static constexpr std::align_val_t kAlign{64};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlign)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlign); }
  bool operator==(const OnLines&) const { return true; }
};
using Bytes = std::vector<uint8_t, OnLines<uint8_t>>;

struct Operands {
  Bytes left, right, residual, packed, result;
  std::vector<float> scales, bias;
  TileProductArgs args;

  Operands(int64_t m, int64_t n, int64_t k, int64_t left_bytes)
      : left(static_cast<size_t>(left_bytes), 3),
        right(static_cast<size_t>(k * n), 1),
        residual(static_cast<size_t>(m * n), 2),
        packed(static_cast<size_t>(packed_tile_bytes(ElementType::kS8, k, n))),
        result(static_cast<size_t>(m * n)),
        scales(static_cast<size_t>(tile_columns(n)), 0.01F),
        bias(scales.size(), 1) {
    pack_tiles(ElementType::kS8, right.data(), n, 1, k, n, packed.data());
    args.a = left.data();
    args.a_stride = k;
    args.b = packed.data();
    args.m = m;
    args.n = n;
    args.k = k;
    args.epilogue.scales = scales.data();
    args.epilogue.bias = bias.data();
    args.epilogue.dst = {result.data(), ElementType::kU8, {1, 0}};
    args.epilogue.dst_stride = n;
    args.epilogue.low = 0;
  }
};

void multiply(const TileProductArgs& args) {
  tile_product({nullptr, {}}, args);
}
void multiply(const SplitProductArgs& args) {
  bf16x6_product({nullptr, {}}, args);
}
template <class Args>
void run(benchmark::State& state, const Args& args) {
  if (!has_tiles()) return state.SkipWithError("no AMX on this CPU");
  for (auto _ : state)
    multiply(args);
  const double operations = 2.0 * static_cast<double>(args.m * args.n * args.k);
  state.counters["operations"] = benchmark::Counter(
      operations, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

// Arguments: rows, columns, k, whether a residual is added.
void tile_product_u8(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Operands operands(m, n, k, m * k);
  const EpilogueOp add{.kind = EpilogueOp::Kind::kAdd,
                       .alpha = 1,
                       .other = {operands.residual.data(), ElementType::kU8, {0.5F, 0}},
                       .row_stride = n,
                       .column_stride = 1};
  operands.args.epilogue.ops = &add;
  operands.args.epilogue.n_ops = state.range(3) != 0 ? 1 : 0;
  run(state, operands.args);
}

// Arguments: rows, columns, k, and how operands lie: 0 weights in panels, 1 both in rows, 2 the
// left one in columns, 3 the right one in columns.
void bf16x6_product_f32(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const bool is_known = state.range(3) == 0, is_left_transposed = state.range(3) == 2;
  const bool is_right_transposed = state.range(3) == 3;
  using Floats = std::vector<float, OnLines<float>>;
  Floats left(static_cast<size_t>(m * k), 0.3F), right(static_cast<size_t>(k * n), 0.7F);
  Floats result(static_cast<size_t>(m * n));
  std::vector<float> scales(static_cast<size_t>(tile_columns(n)), 1), bias(scales.size(), 1);
  const int64_t columns = is_known ? 64 : n;
  SplitProductArgs args{.a = left.data(),
                        .a_stride = is_left_transposed ? m : k,
                        .a_is_transposed = is_left_transposed,
                        .b = {right.data(), columns, columns * k, is_right_transposed ? k : columns,
                              is_right_transposed, is_known},
                        .m = m,
                        .n = n,
                        .k = k,
                        .cut = cut_product(m, n, k, 1)};
  args.epilogue.scales = scales.data();
  args.epilogue.bias = bias.data();
  args.epilogue.dst = {result.data(), ElementType::kF32};
  args.epilogue.dst_stride = n;
  run(state, args);
}

// Arguments: size of the image, of the window, stride, columns, whether planes are read.
void first_convolution_u8(benchmark::State& state) {
  const int64_t size = state.range(0), window = state.range(1), stride = state.range(2);
  const Windows windows{size, size, size / stride, size / stride, window, window, stride, stride,
                        1,    1,    window / 2,    window / 2};
  const TileLines lines = tile_lines(windows, 3, ElementType::kU8);
  const bool has_lines = state.range(4) != 0;
  const int64_t k = has_lines ? lines.steps * kTileDepth : window * window * 3;
  Operands operands(windows.out_height * windows.out_width, state.range(3), k, size * size * 3);
  operands.args.row = has_lines ? TileRow::kLines : TileRow::kWindow;
  operands.args.windows = {windows, 3, 3};
  operands.args.lines = lines;
  run(state, operands.args);
}

// Arguments: size of the image, of the window, stride, columns. Planes of f32, products in bf16.
void first_convolution_f32(benchmark::State& state) {
  const int64_t size = state.range(0), window = state.range(1), stride = state.range(2);
  const Windows windows{size, size, size / stride, size / stride, window, window, stride, stride,
                        1,    1,    window / 2,    window / 2};
  const TileLines lines = tile_lines(windows, 3, ElementType::kF32);
  const int64_t k = tile_line_depth(lines);
  Operands operands(windows.out_height * windows.out_width, state.range(3), 2 * k,
                    size * size * 3 * 4);
  // Numbers whose products are no denormals.
  constexpr uint16_t kThreeQuarters = 0x3f40;
  std::fill_n(reinterpret_cast<float*>(operands.left.data()), size * size * 3, 0.75F);
  std::fill_n(reinterpret_cast<uint16_t*>(operands.packed.data()), operands.packed.size() / 2,
              kThreeQuarters);
  operands.args.type = ElementType::kBf16;
  operands.args.row = TileRow::kLines;
  operands.args.k = k;
  operands.args.lines = lines;
  operands.args.epilogue.dst.type = ElementType::kBf16;
  operands.result.resize(2 * operands.result.size());
  operands.args.epilogue.dst.data = operands.result.data();
  run(state, operands.args);
}
BENCHMARK(first_convolution_f32)
    ->ArgNames({"size", "window", "stride", "n"})
    ->Args({224, 3, 2, 32})
    ->Args({224, 7, 2, 64})
    ->UseRealTime();

// Arguments: size of the image, stride, channels, columns, images.
void convolution_u8(benchmark::State& state) {
  const int64_t size = state.range(0), stride = state.range(1), channels = state.range(2);
  const Windows windows{size, size, size / stride, size / stride, 3, 3, stride, stride, 1, 1, 1, 1};
  const int64_t n_images = state.range(4);
  Operands operands(n_images * windows.out_height * windows.out_width, state.range(3), 9 * channels,
                    n_images * size * size * channels);
  operands.args.row = TileRow::kTaps;
  operands.args.taps = tile_taps(windows, channels);
  run(state, operands.args);
}
BENCHMARK(convolution_u8)
    ->ArgNames({"size", "stride", "channels", "n", "images"})
    ->Args({56, 1, 64, 64, 1})
    ->Args({28, 1, 128, 128, 1})
    ->Args({14, 1, 256, 256, 8})
    ->Args({7, 1, 512, 512, 8})
    ->Args({56, 2, 128, 128, 1})
    ->Args({28, 2, 256, 256, 8})
    ->Args({14, 2, 512, 512, 8})
    ->UseRealTime();

// Arguments: size of the image, channels, columns, images, whether rows are gathered.
void strided_pixels_u8(benchmark::State& state) {
  const int64_t size = state.range(0), channels = state.range(1), n_images = state.range(3);
  const Windows windows{size, size, size / 2, size / 2, 1, 1, 2, 2, 1, 1, 0, 0};
  Operands operands(n_images * windows.out_height * windows.out_width, state.range(2), channels,
                    n_images * size * size * channels);
  operands.args.row = state.range(4) != 0 ? TileRow::kWindow : TileRow::kTaps;
  operands.args.windows = {windows, channels, channels};
  operands.args.taps = tile_taps(windows, channels);
  run(state, operands.args);
}
BENCHMARK(strided_pixels_u8)
    ->ArgNames({"size", "channels", "n", "images", "gathered"})
    ->ArgsProduct({{14, 28, 56}, {128, 256}, {128, 512}, {1, 8}, {0, 1}})
    ->UseRealTime();
BENCHMARK(tile_product_u8)
    ->ArgNames({"m", "n", "k", "residual"})
    ->Args({3136, 256, 64, 0})
    ->Args({3136, 256, 64, 1})
    ->Args({1568, 128, 512, 0})
    ->Args({392, 1024, 256, 0})
    ->Args({392, 1024, 256, 1})
    ->Args({1024, 384, 384, 0})
    ->Args({1024, 384, 1536, 1})
    ->UseRealTime();
BENCHMARK(bf16x6_product_f32)
    ->ArgNames({"m", "n", "k", "layout"})
    ->Args({3136, 64, 64, 0})
    ->Args({3136, 256, 64, 0})
    ->Args({3136, 64, 256, 0})
    ->Args({784, 512, 128, 0})
    ->Args({196, 256, 1024, 0})
    ->ArgsProduct({{2048}, {384}, {384, 1536}, {0, 1, 2, 3}})
    ->ArgsProduct({{128, 1024}, {768}, {768, 3072}, {0, 1, 2, 3}})
    ->ArgsProduct({{128, 1024}, {3072}, {768}, {0, 1, 2, 3}})
    ->UseRealTime();
BENCHMARK(first_convolution_u8)
    ->ArgNames({"size", "window", "stride", "n", "planes"})
    ->ArgsProduct({{224}, {3, 5, 7}, {1, 2}, {32, 64}, {0, 1}})
    ->UseRealTime();

}  // namespace
}  // namespace tenon::onednn::kernels::bench

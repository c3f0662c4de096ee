// SPDX-License-Identifier: Apache-2.0
// Products of 8 bits on AMX tiles, one thread: pointwise convolutions of ResNet-50 with and without
// a residual, products of MiniLM, a first convolution whose windows are gathered.

#include <vector>

#include "bench.h"
#include "kernels/tile_product.h"

namespace tenon::onednn::kernels::bench {
namespace {

struct Operands {
  std::vector<uint8_t> left, right, residual, packed, result;
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

void run(benchmark::State& state, const TileProductArgs& args) {
  if (!has_tiles()) return state.SkipWithError("no AMX on this CPU");
  for (auto _ : state)
    tile_product({nullptr, {}}, args);
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

void first_convolution_u8(benchmark::State& state) {
  const int64_t size = 224;
  Operands operands(size / 2 * size / 2, 64, 7 * 7 * 3, size * size * 3);
  operands.args.has_windows = true;
  operands.args.windows = {{size, size, size / 2, size / 2, 7, 7, 2, 2, 1, 1, 3, 3}, 3, 3};
  run(state, operands.args);
}

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
BENCHMARK(first_convolution_u8)->UseRealTime();

}  // namespace
}  // namespace tenon::onednn::kernels::bench

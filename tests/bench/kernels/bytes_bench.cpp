// SPDX-License-Identifier: Apache-2.0
// 8-bit kernels and copies at the sizes of MiniLM and ResNet-50.

#include <vector>

#include "bench.h"
#include "kernels/copy.h"
#include "kernels/quantize.h"

namespace tenon::onednn::kernels::bench {
namespace {

// Arguments of all: level, threads, n.
Context context_of(const benchmark::State& state) {
  const Level level = static_cast<Level>(state.range(0));
  return make_context(level <= best_level() ? level : best_level(),
                      pool(static_cast<int>(state.range(1))));
}
int threads_of(const benchmark::State& state) {
  return static_cast<int>(state.range(1));
}

void quantize_tensor(benchmark::State& state) {
  const int64_t n = state.range(2);
  Buffer x(n, -4, 4);
  Buffer q(n, 0, 1);
  const float scale = 0.03F;
  const QuantizeArgs args{
      .src = {x.data()}, .dst = {q.data(), ElementType::kU8, {}}, .inner = n, .scales = &scale};
  const Context context = context_of(state);
  for (auto _ : state)
    quantize(context, args);
  report(state, n * 5, threads_of(state));
}

void dequantize_tensor(benchmark::State& state) {
  const int64_t n = state.range(2);
  Buffer q(n, -4, 4);
  Buffer x(n, 0, 1);
  const float scale = 0.03F;
  const QuantizeArgs args{
      .src = {q.data(), ElementType::kS8, {}}, .dst = {x.data()}, .inner = n, .scales = &scale};
  const Context context = context_of(state);
  for (auto _ : state)
    dequantize(context, args);
  report(state, n * 5, threads_of(state));
}

void table_of_bytes(benchmark::State& state) {
  const int64_t n = state.range(2);
  Buffer x(n / 4 + 1, -4, 4);
  Buffer y(n / 4 + 1, 0, 1);
  std::vector<uint8_t> table(256, 3);
  const Context context = context_of(state);
  for (auto _ : state)
    map_bytes(context, table.data(), x.as<uint8_t>(), n, y.as<uint8_t>());
  report(state, n * 2, threads_of(state));
}

void residual_add(benchmark::State& state) {
  const int64_t n = state.range(2);
  Buffer x(n / 4 + 1, -4, 4);
  Buffer y(n / 4 + 1, 0, 1);
  const QuantizedAddArgs args{.a = {x.data(), ElementType::kU8, {0.02F, 3}},
                              .b = {x.data(), ElementType::kS8, {0.03F, 0}},
                              .dst = {y.data(), ElementType::kU8, {0.04F, 0}},
                              .n = n,
                              .relu = true};
  const Context context = context_of(state);
  for (auto _ : state)
    quantized_add(context, args);
  report(state, n * 3, threads_of(state));
}

void requantize_rows(benchmark::State& state) {
  const int64_t n = state.range(2);
  Buffer acc(n, -4, 4);
  Buffer y(n / 4 + 1, 0, 1);
  Buffer scales(512, 1e-9F, 2e-9F);
  const RequantizeArgs args{.src = acc.as<int32_t>(),
                            .dst = {y.data(), ElementType::kU8, {}},
                            .rows = n / 512,
                            .n = 512,
                            .scales = scales.data(),
                            .per_column = true};
  const Context context = context_of(state);
  for (auto _ : state)
    requantize(context, args);
  report(state, n * 5, threads_of(state));
}

// [8, 128, 12, 64] -> [8, 12, 128, 64], rows of 64; [8, 12, 128, 64] -> [8, 12, 64, 128]; NCHW ->
// NHWC
void transpose(benchmark::State& state) {
  const int64_t size = state.range(3);
  constexpr StridedCopy kMoves[] = {
      {.dims = {8, 12, 128, 64}, .src_strides = {128 * 12 * 64, 64, 12 * 64, 1}},
      {.dims = {8, 12, 64, 128}, .src_strides = {12 * 128 * 64, 128 * 64, 1, 64}},
      {.dims = {16, 56, 56, 256}, .src_strides = {256 * 56 * 56, 56, 1, 56 * 56}}};
  StridedCopy copy = kMoves[state.range(2)];
  copy.element_bytes = size;
  copy.rank = 4;
  int64_t n = 1;
  for (int64_t axis = copy.rank; axis-- > 0; n *= copy.dims[axis])
    copy.dst_strides[axis] = n;
  Buffer x(n * size / 4, -4, 4);
  Buffer y(n * size / 4, 0, 1);
  const Context context = context_of(state);
  copy.src = x.data();
  copy.dst = y.data();
  for (auto _ : state)
    strided_copy(context, copy);
  report(state, n * size * 2, threads_of(state));
}

#define TENON_BENCH(function, ...)                      \
  BENCHMARK(function)                                   \
      ->ArgsProduct({{0, 1, 2}, {1, 2}, {__VA_ARGS__}}) \
      ->ArgNames({"level", "threads", "n"})             \
      ->UseRealTime()
TENON_BENCH(quantize_tensor, 128 * 384, 1 << 24);
TENON_BENCH(dequantize_tensor, 128 * 384, 1 << 24);
TENON_BENCH(table_of_bytes, 128 * 1536);
TENON_BENCH(residual_add, 56 * 56 * 256);
TENON_BENCH(requantize_rows, 512 * 784);
BENCHMARK(transpose)
    ->ArgsProduct({{0, 2}, {1, 2}, {0, 1, 2}, {1, 2, 4}})
    ->ArgNames({"level", "threads", "shape", "bytes"})
    ->UseRealTime();

}  // namespace
}  // namespace tenon::onednn::kernels::bench

// SPDX-License-Identifier: Apache-2.0
// Softmax of attention scores, norms of transformer rows, pooling, losses of sequences: at the
// sizes of BERT-base and ResNet-50 (in cache), and once beyond all caches.

#include <algorithm>
#include <vector>

#include "bench.h"
#include "kernels/ctc.h"
#include "kernels/norm.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"

namespace tenon::onednn::kernels::bench {
namespace {

// Arguments of all: level, threads, rows, n.
Context context_of(const benchmark::State& state) {
  const Level level = static_cast<Level>(state.range(0));
  return make_context(level <= best_level() ? level : best_level(),
                      pool(static_cast<int>(state.range(1))));
}
int threads_of(const benchmark::State& state) {
  return static_cast<int>(state.range(1));
}

void softmax_masked(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer x(rows * n, -8, 8);
  Buffer mask(n, -1, 0);
  SoftmaxArgs args{.src = {x.data()}, .dst = {x.data()}, .dims = {1, 1, rows}, .n = n};
  args.scale = 0.125F;
  args.mask = {mask.data()};
  args.mask_strides[3] = 1;
  const Context context = context_of(state);
  for (auto _ : state)
    softmax(context, args);
  report(state, rows * n * 8, threads_of(state));
}

// Classes of pixels, as at the end of a segmentation.
void softmax_narrow(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer x(rows * n, -8, 8);
  Buffer y(rows * n, 0, 0);
  const SoftmaxArgs args{.src = {x.data()}, .dst = {y.data()}, .dims = {1, 1, rows}, .n = n};
  const Context context = context_of(state);
  for (auto _ : state)
    softmax(context, args);
  report(state, rows * n * 8, threads_of(state));
}

// Scores of padded tokens lie far below the others; n bf16 scores, half of them so.
void softmax_padded_bf16(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  std::vector<uint16_t> x(static_cast<size_t>(rows * n));
  std::vector<uint16_t> y(x.size());
  Buffer mask(n, 0, 0);
  std::fill(mask.data() + n / 2, mask.data() + n, -1e4F);
  SoftmaxArgs args{.src = {x.data(), ElementType::kBf16, {}},
                   .dst = {y.data(), ElementType::kBf16, {}},
                   .dims = {1, 1, rows},
                   .n = n};
  args.mask = {mask.data()};
  args.mask_strides[3] = 1;
  const Context context = context_of(state);
  for (auto _ : state)
    softmax(context, args);
  report(state, rows * n * 4, threads_of(state));
}

// The gradient of 16 samples of `rows` frames in all, with n classes and targets of 12.
void ctc_gradient(benchmark::State& state) {
  constexpr int64_t kSamples = 16, kLongest = 12;
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer scores(rows * n, -4, 4);
  Buffer gradients(rows * n, 0, 0);
  std::vector<int64_t> targets(kSamples * kLongest);
  for (size_t i = 0; i < targets.size(); ++i)
    targets[i] = 1 + static_cast<int64_t>(i * 7) % (n - 1);
  Ctc args{.samples = kSamples, .frames = rows / kSamples, .classes = n, .longest = kLongest};
  args.scores = scores.data();
  args.targets = targets.data();
  args.gradients = gradients.data();
  const Context context = context_of(state);
  for (auto _ : state)
    ctc(context, args);
  report(state, rows * n * 8, threads_of(state));
}

void layer_norm(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer x(rows * n, -1, 1);
  Buffer y(rows * n, -1, 1);
  Buffer gamma(n, 0, 1);
  const NormArgs args{.src = {x.data()},
                      .dst = {y.data()},
                      .gamma = gamma.data(),
                      .beta = gamma.data(),
                      .rows = rows,
                      .n = n,
                      .epsilon = 1e-5F};
  const Context context = context_of(state);
  for (auto _ : state)
    normalize(context, args);
  report(state, rows * n * 8, threads_of(state));
}

// x + r -> f32 sum, bf16 and u8 of the norm: 4 + 4 + 4 + 2 + 1 bytes an element
void layer_norm_residual(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer x(rows * n, -1, 1);
  Buffer r(rows * n, -1e-6F, 1e-6F);
  Buffer y(rows * n, -1, 1);
  Buffer z(rows * n, -1, 1);
  Buffer gamma(n, 0, 1);
  const NormArgs args{.src = {x.data()},
                      .residual = {r.data()},
                      .sum = {x.data()},
                      .dst = {y.data(), ElementType::kBf16, {}},
                      .dst2 = {z.data(), ElementType::kU8, {0.03F, 128}},
                      .gamma = gamma.data(),
                      .beta = gamma.data(),
                      .rows = rows,
                      .n = n,
                      .epsilon = 1e-5F};
  const Context context = context_of(state);
  for (auto _ : state)
    normalize(context, args);
  report(state, rows * n * 15, threads_of(state));
}

// [1, rows, n] f32 channels-last -> [1, n]
void mean_pool(benchmark::State& state) {
  const int64_t rows = state.range(2);
  const int64_t n = state.range(3);
  Buffer x(rows * n, -1, 1);
  Buffer y(n, -1, 1);
  const Context context = context_of(state);
  const ReduceArgs args{Reduction::kMean, {x.data()}, {y.data()}, 1, rows, n};
  for (auto _ : state)
    reduce(context, args);
  report(state, rows * n * 4, threads_of(state));
}

#define TENON_BENCH(function, ...)                    \
  BENCHMARK(function)                                 \
      ->ArgsProduct({{0, 1, 2}, {1, 2}, __VA_ARGS__}) \
      ->ArgNames({"level", "threads", "rows", "n"})   \
      ->UseRealTime()
TENON_BENCH(softmax_masked, {1536}, {128});
TENON_BENCH(softmax_masked, {16384}, {1024});
TENON_BENCH(softmax_narrow, {65536}, {2, 3, 8, 16});
TENON_BENCH(softmax_padded_bf16, {1536}, {128});
TENON_BENCH(ctc_gradient, {640}, {97});
TENON_BENCH(ctc_gradient, {640}, {6625});
TENON_BENCH(layer_norm, {128}, {768});
TENON_BENCH(layer_norm, {16384}, {768});
TENON_BENCH(layer_norm_residual, {128}, {384});
TENON_BENCH(mean_pool, {49}, {2048});

}  // namespace
}  // namespace tenon::onednn::kernels::bench

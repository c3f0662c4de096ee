// SPDX-License-Identifier: Apache-2.0
// Attention in f32, and its gradient in f32 and in bf16 on tiles: heads of [tokens, heads, depth]
// as transformers have them, with a mask of keys. Reports the products' operations a second.

#include "bench.h"
#include "kernels/attention.h"
#include "kernels/attention_grad.h"
#include "kernels/tile_attention_grad.h"
#include "kernels/tile_product.h"

namespace tenon::onednn::kernels::bench {
namespace {

// Arguments: level, threads, heads, tokens, depth.
void attention_heads(benchmark::State& state) {
  const Level level = static_cast<Level>(state.range(0));
  const Context context = make_context(level <= best_level() ? level : best_level(),
                                       pool(static_cast<int>(state.range(1))));
  AttentionArgs args;
  args.inner = state.range(2);
  args.rows = args.keys = state.range(3);
  args.depth = args.width = state.range(4);
  args.scale = 0.2F;
  const int64_t token = args.inner * args.depth;
  args.q_strides = args.k_strides = args.v_strides = args.dst_strides = {0, args.depth, token, 1};
  Buffer q(args.rows * token, -1, 1), k(args.rows * token, -1, 1), v(args.rows * token, -1, 1);
  Buffer y(args.rows * token, 0, 1), mask(args.keys, -1, 0);
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.mask = mask.data();
  args.mask_strides = {.column = 1};
  args.dst = {y.data()};
  for (auto _ : state)
    attention(context, args);
  const int64_t products = args.inner * args.rows * args.keys * (args.depth + args.width);
  state.counters["flops"] = benchmark::Counter(
      static_cast<double>(2 * products * state.iterations()), benchmark::Counter::kIsRate);
}

BENCHMARK(attention_heads)
    ->ArgNames({"level", "threads", "heads", "tokens", "depth"})
    ->ArgsProduct({{1, 2}, {1, 2}, {12}, {16, 32, 64, 128, 256, 512}, {32, 64}})
    ->Args({2, 1, 1, 1024, 64})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// Arguments: threads, batches, heads, tokens, depth. So many batches decide which cache they are
// in.
template <class Args, class Element, void run(const Context&, const Args&)>
void differentiate(benchmark::State& state, ElementType type) {
  const Context context = make_context(best_level(), pool(static_cast<int>(state.range(0))));
  Args args;
  args.outer = state.range(1);
  args.inner = state.range(2);
  args.rows = args.keys = state.range(3);
  args.depth = args.width = state.range(4);
  args.scale = 0.2F;
  const int64_t token = args.inner * args.depth;
  const int64_t count = args.outer * args.rows * token;
  const AttentionStrides heads{args.rows * token, args.depth, token, 1};
  args.q_strides = args.k_strides = args.v_strides = args.dy_strides = heads;
  Buffer operands(4 * count, 0, 0), results(3 * count, 0, 0), mask(args.keys, -1, 0);
  const auto* const in = operands.as<Element>();
  auto* const out = results.as<Element>();
  args.q = in;
  args.k = in + count;
  args.v = in + 2 * count;
  args.dy = in + 3 * count;
  args.dq = {out, type, heads};
  args.dk = {out + count, type, heads};
  args.dv = {out + 2 * count, type, heads};
  args.mask = mask.data();
  args.mask_strides = {.column = 1};
  for (auto _ : state)
    run(context, args);
  const int64_t products = 5 * args.outer * args.inner * args.rows * args.keys * args.depth;
  state.counters["flops"] = benchmark::Counter(
      static_cast<double>(2 * products * state.iterations()), benchmark::Counter::kIsRate);
}

void attention_grads(benchmark::State& state) {
  differentiate<AttentionGradArgs, float, attention_grad>(state, ElementType::kF32);
}
void tile_attention_grads(benchmark::State& state) {
  if (!has_tiles()) return state.SkipWithError("no AMX on this CPU");
  differentiate<TileAttentionGradArgs, uint16_t, tile_attention_grad>(state, ElementType::kBf16);
}

void gradients(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"threads", "batches", "heads", "tokens", "depth"})
      ->ArgsProduct({{1, 2}, {1, 8}, {12}, {32, 128, 256, 512}, {32, 64}})
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}
BENCHMARK(attention_grads)->Apply(gradients);
BENCHMARK(tile_attention_grads)->Apply(gradients);

}  // namespace
}  // namespace tenon::onednn::kernels::bench

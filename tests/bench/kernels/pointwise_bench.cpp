// SPDX-License-Identifier: Apache-2.0
// Pointwise groups: one busy program over 16M elements, GELU at a transformer's size, the plain
// sum.

#include <string>
#include <vector>

#include "bench.h"
#include "kernels/pointwise.h"

namespace tenon::onednn::kernels::bench {
namespace {

tn_expr_node op(uint32_t code, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
  return {code, a, b, c, 0};
}
tn_expr_node constant(double x) {
  return {TN_EXPR_CONST, 0, 0, 0, x};
}

void run(benchmark::State& state,
         const std::vector<tn_expr_node>& nodes,
         int64_t n,
         uint64_t n_inputs) {
  const int n_threads = static_cast<int>(state.range(1));
  const Level level = static_cast<Level>(state.range(0));
  if (level > best_level()) return state.SkipWithError("this CPU lacks the level");
  Buffer a(n, -0.9F, 4.0F);
  Buffer b(n, -2.0F, 2.0F);
  Buffer y(n, 0.0F, 1.0F);
  const PointwiseEdge edge{ElementType::kF32, {}, {1}};
  const std::vector<PointwiseEdge> inputs(n_inputs, edge);
  const uint32_t result = static_cast<uint32_t>(nodes.size()) - 1;
  PointwisePlan plan;
  const std::string why = plan.make({nodes, {&result, 1}, {&n, 1}, inputs, {&edge, 1}});
  if (!why.empty()) return state.SkipWithError(why.c_str());
  const void* const sources[] = {a.data(), b.data()};
  void* const target = y.data();
  const Context context = make_context(level, pool(n_threads));
  for (auto _ : state)
    plan.run(context, {sources, n_inputs}, {&target, 1});
  report(state, n * 4 * static_cast<int64_t>(n_inputs + 1), n_threads);
}

// tanh(a*b+a)*0.5 + exp(-a)*b - sqrt(a+1)
void busy(benchmark::State& state) {
  run(state,
      {op(TN_EXPR_INPUT, 0), op(TN_EXPR_INPUT, 1), op(TN_EXPR_MUL, 0, 1), op(TN_EXPR_ADD, 2, 0),
       op(TN_EXPR_TANH, 3), constant(0.5), op(TN_EXPR_MUL, 4, 5), op(TN_EXPR_NEG, 0),
       op(TN_EXPR_EXP, 7), op(TN_EXPR_MUL, 8, 1), op(TN_EXPR_ADD, 6, 9), constant(1),
       op(TN_EXPR_ADD, 0, 11), op(TN_EXPR_SQRT, 12), op(TN_EXPR_SUB, 10, 13)},
      1 << 24, 2);
}
void add(benchmark::State& state) {
  run(state, {op(TN_EXPR_INPUT, 0), op(TN_EXPR_INPUT, 1), op(TN_EXPR_ADD, 0, 1)}, 1 << 24, 2);
}
// 0.5 x (1 + erf(x / sqrt 2)) over [128, 3072]
void gelu(benchmark::State& state) {
  run(state,
      {op(TN_EXPR_INPUT, 0), constant(0.7071067811865475), op(TN_EXPR_MUL, 0, 1),
       op(TN_EXPR_ERF, 2), constant(1), op(TN_EXPR_ADD, 3, 4), op(TN_EXPR_MUL, 0, 5), constant(0.5),
       op(TN_EXPR_MUL, 6, 7)},
      128 * 3072, 1);
}

#define TENON_BENCH(function)            \
  BENCHMARK(function)                    \
      ->ArgsProduct({{0, 1, 2}, {1, 2}}) \
      ->ArgNames({"level", "threads"})   \
      ->UseRealTime()
TENON_BENCH(add);
TENON_BENCH(busy);
TENON_BENCH(gelu);

}  // namespace
}  // namespace tenon::onednn::kernels::bench

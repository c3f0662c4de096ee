// SPDX-License-Identifier: Apache-2.0
// Cuts tensors into rows that have one scale, or one scale per element.

#include "quantize.h"

#include <algorithm>
#include <cmath>

#include "kernel_table.h"
#include "pointwise.h"

namespace tenon::onednn::kernels {

namespace {

using RowKernel = void (*)(const QuantizeArgs& args, const QuantizeRow& row);

// One row of the four forms: where it lies, where its scales start, and whether they are [n] or
// [1].
QuantizeRow row_of(const QuantizeArgs& args, int64_t r) {
  if (args.block == 0 && args.inner == 1) return {r * args.axis, args.axis, 0, true};
  if (args.block == 0) return {r * args.inner, args.inner, r % args.axis, false};
  const int64_t blocks = (args.axis + args.block - 1) / args.block;
  if (args.inner == 1) {
    const int64_t first = r % blocks * args.block;
    const int64_t n = std::min(args.block, args.axis - first);
    return {r / blocks * args.axis + first, n, r, false};
  }
  const int64_t block = r % args.axis / args.block;
  return {r * args.inner, args.inner, (r / args.axis * blocks + block) * args.inner, true};
}

int64_t count_rows(const QuantizeArgs& args) {
  if (args.block == 0 && args.inner == 1) return args.outer;
  if (args.block != 0 && args.inner == 1) {
    return args.outer * ((args.axis + args.block - 1) / args.block);
  }
  return args.outer * args.axis;
}

void run_rows(const Context& context, const QuantizeArgs& args, RowKernel kernel) {
  const int64_t total = args.outer * args.axis * args.inner;
  if (total <= 0) return;
  const int64_t bytes = element_bytes(args.src.type) + element_bytes(args.dst.type);
  if (args.axis == 1 && args.block == 0) {  // per tensor: cut anywhere
    parallel_for(context.parallel, total, grain_rows(bytes),
                 [&](int64_t lo, int64_t hi) { kernel(args, {lo, hi - lo, 0, false}); });
    return;
  }
  const int64_t rows = count_rows(args);
  parallel_for(context.parallel, rows, grain_rows(bytes * total / rows),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t r = lo; r < hi; ++r)
                   kernel(args, row_of(args, r));
               });
}

}  // namespace

void quantize(const Context& context, const QuantizeArgs& args) {
  run_rows(context, args, context.table->quantize_row);
}

void dequantize(const Context& context, const QuantizeArgs& args) {
  run_rows(context, args, context.table->dequantize_row);
}

void dynamic_quantize(
    const Context& context, const float* x, int64_t n, uint8_t* y, float* scale, uint8_t* zero) {
  float low = 0, high = 0;
  context.table->range_with_zero(x, n, &low, &high);
  *scale = (high - low) / 255.0F;
  if (*scale == 0) *scale = 1;
  *zero = static_cast<uint8_t>(std::nearbyint(std::clamp(-low / *scale, 0.0F, 255.0F)));
  QuantizeArgs args;
  args.src = {x, ElementType::kF32, {}};
  args.dst = {y, ElementType::kU8, {}};
  args.inner = n;
  args.scales = scale;
  args.zero_points = zero;
  quantize(context, args);
}

void requantize(const Context& context, const RequantizeArgs& args) {
  parallel_for(context.parallel, args.rows, grain_rows(args.n * 5),
               [&](int64_t lo, int64_t hi) { context.table->requantize_rows(args, lo, hi); });
}

void quantized_add(const Context& context, const QuantizedAddArgs& args) {
  parallel_for(context.parallel, args.n, grain_rows(3),
               [&](int64_t lo, int64_t hi) { context.table->quantized_add(args, lo, hi); });
}

void map_bytes(
    const Context& context, const uint8_t* table, const uint8_t* src, int64_t n, uint8_t* dst) {
  parallel_for(context.parallel, n, grain_rows(2), [&](int64_t lo, int64_t hi) {
    context.table->map_bytes(table, {.src = src + lo, .dst = dst + lo, .n = hi - lo});
  });
}

std::string make_table(std::span<const tn_expr_node> nodes,
                       uint32_t result,
                       const Source& src,
                       const Target& dst,
                       uint8_t* table) {
  constexpr int64_t kInt8 = 256;
  const PointwiseEdge input{src.type, src.quant, {1}};
  const PointwiseEdge output{dst.type, dst.quant, {1}};
  PointwisePlan plan;
  std::string why = plan.make({nodes, {&result, 1}, {&kInt8, 1}, {&input, 1}, {&output, 1}});
  if (!why.empty()) return why;
  uint8_t quantized[kInt8];
  for (int i = 0; i < kInt8; ++i)
    quantized[i] = static_cast<uint8_t>(i);
  const void* const source = quantized;
  void* const target = table;
  plan.run(make_context(best_level()), {&source, 1}, {&target, 1});
  return {};
}

}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
#include "depthwise_grad.h"

#include <algorithm>

#include "kernel_table.h"
#include "numbers.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kMostPieces = 16;
constexpr int64_t kBlock = 32;  // channels of one piece of work: a cache line of bf16

int64_t rows_of(const DepthwiseGradArgs& args) {
  return args.images * args.windows.out_height;
}
int64_t pieces_of(const DepthwiseGradArgs& args) {
  return std::min(kMostPieces, rows_of(args));
}

}  // namespace

int64_t depthwise_grad_scratch_bytes(const DepthwiseGradArgs& args) {
  return pieces_of(args) * args.taps() * args.channels * static_cast<int64_t>(sizeof(float));
}

void depthwise_grad(const Context& context, const DepthwiseGradArgs& args, void* scratch) {
  const int64_t pieces = pieces_of(args), rows = rows_of(args), taps = args.taps();
  const int64_t blocks = (args.channels + kBlock - 1) / kBlock;
  float* sums = static_cast<float*>(scratch);
  const int64_t bytes = rows / pieces * args.windows.out_width * kBlock * element_bytes(args.type);
  parallel_for(
      context.parallel, pieces * blocks, grain_rows(bytes * taps), [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) {
          const int64_t piece = i / blocks, first = i % blocks * kBlock;
          context.table->depthwise_grad_piece(
              args, {rows * piece / pieces, rows * (piece + 1) / pieces, first,
                     std::min(first + kBlock, args.channels), sums + piece * taps * args.channels});
        }
      });
  for (int64_t c = 0; c < args.channels; ++c)
    for (int64_t t = 0; t < taps; ++t) {
      float sum = 0;
      for (int64_t piece = 0; piece < pieces; ++piece)
        sum += sums[(piece * taps + t) * args.channels + c];
      args.dw[c * taps + t] = sum;
    }
}

}  // namespace tenon::onednn::kernels

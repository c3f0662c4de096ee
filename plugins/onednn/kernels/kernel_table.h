// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dispatch table: one row per compiled kernel, one table per CPU level. The structs are the
// arguments of the row functions; callers use the family headers (pointwise.h, softmax.h, ...),
// which check, collapse dimensions and cut the work for the pool.

#include <cstdint>

#include "attention_args.h"
#include "attention_grad_args.h"
#include "batch_norm_args.h"
#include "binary_product_args.h"
#include "cached_attention_args.h"
#include "channel_rows_args.h"
#include "copy_args.h"
#include "ctc_args.h"
#include "cumulate_args.h"
#include "depthwise_args.h"
#include "depthwise_grad_args.h"
#include "draws_args.h"
#include "exact_args.h"
#include "exact_product_args.h"
#include "exact_reduce_args.h"
#include "float_depthwise_args.h"
#include "float_product_args.h"
#include "fold_args.h"
#include "int4_product_args.h"
#include "int8_product_args.h"
#include "max_pool_args.h"
#include "quantize_args.h"
#include "row_args.h"
#include "row_product_args.h"
#include "sort_args.h"
#include "sparse_product_args.h"
#include "types.h"
#include "winograd_args.h"

namespace tenon::onednn::kernels {

// One operand of a pointwise instruction: a tile of f32, or with step 0 one register of equal
// values.
struct PointwiseOperand {
  const float* data;
  int64_t step;
};
// dst and all operands hold n_vectors whole registers of the level; dst may be an operand.
using PointwiseOp = void (*)(
    float* dst, PointwiseOperand a, PointwiseOperand b, PointwiseOperand c, int64_t n_vectors);
// Indexed by TN_EXPR_* and by the fused instructions behind them; null: not supported.
constexpr uint32_t kOpMulAdd = 200;     // a * b + c
constexpr uint32_t kOpMulSub = 201;     // a * b - c
constexpr uint32_t kOpNegMulAdd = 202;  // c - a * b
constexpr uint32_t kOpCount = 256;
struct PointwiseOps {
  PointwiseOp op[kOpCount];
};

struct KernelTable {
#define TENON_KERNEL(name, arguments) void(*name) arguments;
#include "kernel_table.def"
#undef TENON_KERNEL
};

}  // namespace tenon::onednn::kernels

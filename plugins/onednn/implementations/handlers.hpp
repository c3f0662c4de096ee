// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of the table of operators that this backend runs: one row each in handlers.cpp, one
// file per family.

#include <string>

#include "lowering/handler.hpp"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

#define TENON_ONEDNN_HANDLER(family)                                 \
  std::string refuse_##family(const Graph& graph, const Node& node); \
  void lower_##family(Lowering& lowering, int node);
TENON_ONEDNN_HANDLER(attention_grad)
TENON_ONEDNN_HANDLER(group_query_attention)
TENON_ONEDNN_HANDLER(conv)
TENON_ONEDNN_HANDLER(conv_transpose)
TENON_ONEDNN_HANDLER(batch_norm_grad)
TENON_ONEDNN_HANDLER(layer_norm_grad)
TENON_ONEDNN_HANDLER(matmul)
TENON_ONEDNN_HANDLER(exact_product)
TENON_ONEDNN_HANDLER(gemm)
TENON_ONEDNN_HANDLER(matmul_n_bits)
TENON_ONEDNN_HANDLER(pool)
TENON_ONEDNN_HANDLER(global_pool)
TENON_ONEDNN_HANDLER(pointwise)
TENON_ONEDNN_HANDLER(quantize)
TENON_ONEDNN_HANDLER(dequantize)
TENON_ONEDNN_HANDLER(quantize_any)
TENON_ONEDNN_HANDLER(reshape)
TENON_ONEDNN_HANDLER(transpose)
TENON_ONEDNN_HANDLER(slice)
TENON_ONEDNN_HANDLER(split)
TENON_ONEDNN_HANDLER(concat)
TENON_ONEDNN_HANDLER(expand)
TENON_ONEDNN_HANDLER(cast)
TENON_ONEDNN_HANDLER(signs)
TENON_ONEDNN_HANDLER(softmax)
TENON_ONEDNN_HANDLER(layer_norm)
TENON_ONEDNN_HANDLER(batch_norm)
TENON_ONEDNN_HANDLER(gather)
TENON_ONEDNN_HANDLER(reduce)
TENON_ONEDNN_HANDLER(resize)
TENON_ONEDNN_HANDLER(pad)
std::string refuse_sum_to(const Graph& graph, const Node& node);  // lowered as ReduceSum
TENON_ONEDNN_HANDLER(arg_reduce)
TENON_ONEDNN_HANDLER(hardmax)
TENON_ONEDNN_HANDLER(col2im)
TENON_ONEDNN_HANDLER(cumulate)
TENON_ONEDNN_HANDLER(cumulative_product_grad)
TENON_ONEDNN_HANDLER(top_k)
TENON_ONEDNN_HANDLER(reverse_sequence)
TENON_ONEDNN_HANDLER(grid_sample)
TENON_ONEDNN_HANDLER(roi_align)
TENON_ONEDNN_HANDLER(loop)
TENON_ONEDNN_HANDLER(scan)
TENON_ONEDNN_HANDLER(scatter)
TENON_ONEDNN_HANDLER(gather_places)
TENON_ONEDNN_HANDLER(tile)
TENON_ONEDNN_HANDLER(trilu)
TENON_ONEDNN_HANDLER(eye_like)
TENON_ONEDNN_HANDLER(one_hot)
TENON_ONEDNN_HANDLER(range)
TENON_ONEDNN_HANDLER(ctc)
TENON_ONEDNN_HANDLER(random)
TENON_ONEDNN_HANDLER(random_like)
TENON_ONEDNN_HANDLER(shape)
TENON_ONEDNN_HANDLER(size)
TENON_ONEDNN_HANDLER(constant_of_shape)
TENON_ONEDNN_HANDLER(blocks)
TENON_ONEDNN_HANDLER(bit_cast)
TENON_ONEDNN_HANDLER(group_norm)
TENON_ONEDNN_HANDLER(lrn)
TENON_ONEDNN_HANDLER(recurrent)
TENON_ONEDNN_HANDLER(conv_weight_grad)
TENON_ONEDNN_HANDLER(pool_grad)
TENON_ONEDNN_HANDLER(matmul_integer)
TENON_ONEDNN_HANDLER(dynamic_quantize)
#undef TENON_ONEDNN_HANDLER

}  // namespace tenon::onednn

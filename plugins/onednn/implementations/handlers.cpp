// SPDX-License-Identifier: Apache-2.0
#include "handlers.hpp"

#include "rewrites/attention_grads.hpp"

namespace tenon::onednn {
namespace {

constexpr Handler kHandlers[] = {
    {"ArgMax", refuse_arg_reduce, lower_arg_reduce, kAnyType},
    {"ArgMin", refuse_arg_reduce, lower_arg_reduce, kAnyType},
    {kAttentionGrad, refuse_attention_grad, lower_attention_grad, kOptionalFirst},
    {"AveragePool", refuse_pool, lower_pool, kWidened, kSamplesApart},
    {"BatchNormalization", refuse_batch_norm, lower_batch_norm, kWidened},
    {"BitCast", refuse_bit_cast, lower_bit_cast, kAnyType},
    {"Cast", refuse_cast, lower_cast, kAnyType | kNarrow},
    {"CastLike", refuse_cast, lower_cast, kAnyType | kEmpty | kNarrow},
    {"Concat", refuse_concat, lower_concat, kAnyType | kEmpty},
    {"ConstantOfShape", refuse_constant_of_shape, lower_constant_of_shape, kAnyType},
    {"Conv", refuse_conv, lower_conv, kWidened, kSamplesApart},
    {"ConvTranspose", refuse_conv_transpose, lower_conv_transpose, kWidened},
    {"CumProd", refuse_cumulate, lower_cumulate, kAnyType},
    {"CumSum", refuse_cumulate, lower_cumulate, kAnyType},
    {"DepthToSpace", refuse_blocks, lower_blocks, kAnyType},
    {"DequantizeLinear", refuse_dequantize, lower_dequantize, kAnyType | kNarrow, kSamplesApart},
    {"DequantizeLinear.any", refuse_quantize_any, lower_quantize_any, kAnyType | kNarrow},
    {"Dropout", refuse_reshape, lower_reshape, kAnyType},
    {"DynamicQuantizeLinear", refuse_dynamic_quantize, lower_dynamic_quantize},
    {"Expand", refuse_expand, lower_expand, kAnyType},
    {"EyeLike", refuse_eye_like, lower_eye_like, kAnyType},
    {"Flatten", refuse_reshape, lower_reshape, kAnyType},
    {"GRU", refuse_recurrent, lower_recurrent, kWidened},
    {"Gather", refuse_gather, lower_gather, kAnyType},
    {"GatherElements", refuse_gather_places, lower_gather_places, kAnyType},
    {"GatherND", refuse_gather_places, lower_gather_places, kAnyType},
    {"Gemm", refuse_gemm, lower_gemm, kWidened},
    {"GlobalAveragePool", refuse_global_pool, lower_global_pool, kWidened, kSamplesApart},
    {"GlobalMaxPool", refuse_global_pool, lower_global_pool, kWidened, kSamplesApart},
    {"GroupNormalization", refuse_group_norm, lower_group_norm, kWidened},
    {"Hardmax", refuse_hardmax, lower_hardmax, kAnyType},
    {"Identity", refuse_reshape, lower_reshape, kAnyType},
    {"InstanceNormalization", refuse_group_norm, lower_group_norm, kWidened},
    {"LRN", refuse_lrn, lower_lrn, kWidened},
    {"LSTM", refuse_recurrent, lower_recurrent, kWidened},
    {"LayerNormalization", refuse_layer_norm, lower_layer_norm, kWidened},
    {"LogSoftmax", refuse_softmax, lower_softmax, kWidened},
    {"Loop", refuse_loop, lower_loop, kAnyType | kOptionalFirst},
    {"MatMul", refuse_matmul, lower_matmul, kWidened},
    {"MatMul.any", refuse_exact_product, lower_exact_product, kAnyType},
    {"MatMulInteger", refuse_matmul_integer, lower_matmul_integer},
    {"MaxPool", refuse_pool, lower_pool, kWidened, kSamplesApart},
    {"OneHot", refuse_one_hot, lower_one_hot, kAnyType},
    {"Pad", refuse_pad, lower_pad, kAnyType | kEmpty},
    {"QuantizeLinear", refuse_quantize, lower_quantize, kUsual, kSamplesApart},
    {"QuantizeLinear.any", refuse_quantize_any, lower_quantize_any, kAnyType | kNarrow},
    {"RMSNormalization", refuse_layer_norm, lower_layer_norm, kWidened},
    {"RNN", refuse_recurrent, lower_recurrent, kWidened},
    {"RandomNormalLike", refuse_random_like, lower_random_like, kAnyType | kOptionalFirst},
    {"RandomUniformLike", refuse_random_like, lower_random_like, kAnyType | kOptionalFirst},
    {"Range", refuse_range, lower_range, kAnyType},
    {"ReduceL1", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceL2", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceLogSum", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceLogSumExp", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceMax", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceMean", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceMin", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceProd", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceSum", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"ReduceSumSquare", refuse_reduce, lower_reduce, kAnyType | kEmpty},
    {"Reshape", refuse_reshape, lower_reshape, kAnyType},
    {"Resize", refuse_resize, lower_resize, kEmpty | kWidened},
    {"Scan", refuse_scan, lower_scan, kAnyType},
    {"ScatterElements", refuse_scatter, lower_scatter, kAnyType},
    {"ScatterND", refuse_scatter, lower_scatter, kAnyType},
    {"Shape", refuse_shape, lower_shape, kAnyType | kEmpty | kNarrow},
    {"Size", refuse_size, lower_size, kAnyType | kEmpty | kNarrow},
    {"Slice", refuse_slice, lower_slice, kAnyType},
    {"Softmax", refuse_softmax, lower_softmax, kWidened},
    {"SpaceToDepth", refuse_blocks, lower_blocks, kAnyType},
    {"Split", refuse_split, lower_split, kAnyType | kEmpty},
    {"Squeeze", refuse_reshape, lower_reshape, kAnyType},
    {"Tile", refuse_tile, lower_tile, kAnyType},
    {"TopK", refuse_top_k, lower_top_k, kAnyType},
    {"Transpose", refuse_transpose, lower_transpose, kAnyType},
    {"Trilu", refuse_trilu, lower_trilu, kAnyType},
    {"Unsqueeze", refuse_reshape, lower_reshape, kAnyType},
    {"com.microsoft.MatMulNBits", refuse_matmul_n_bits, lower_matmul_n_bits, kAnyType},
    {"tenon.AveragePoolGrad", refuse_pool_grad, lower_pool_grad, kWidened},
    {"tenon.Barrier", refuse_reshape, lower_reshape, kAnyType},
    {"tenon.BatchNormGrad", refuse_batch_norm_grad, lower_batch_norm_grad, kWidened},
    {"tenon.ConvInputGrad", refuse_conv_transpose, lower_conv_transpose, kWidened},
    {"tenon.ConvWeightGrad", refuse_conv_weight_grad, lower_conv_weight_grad, kWidened},
    {"tenon.CtcLoss", refuse_ctc, lower_ctc, kAnyType},
    {"tenon.CtcLossGrad", refuse_ctc, lower_ctc, kAnyType},
    {"tenon.LayerNormGrad", refuse_layer_norm_grad, lower_layer_norm_grad, kWidened},
    {"tenon.MaxPoolGrad", refuse_pool_grad, lower_pool_grad, kWidened},
    {"tenon.Random", refuse_random, lower_random, kAnyType},
    {"tenon.Signs", refuse_signs, lower_signs},
    {"tenon.StopGradient", refuse_reshape, lower_reshape, kAnyType},
    {"tenon.SumTo", refuse_sum_to, lower_reduce, kAnyType},
};
constexpr Handler kPointwise = {"", refuse_pointwise, lower_pointwise, kAnyType, kSamplesApart};

}  // namespace

const Handler& find_handler(std::string_view op) {
  for (const Handler& handler : kHandlers) {
    if (handler.op == op) return handler;
  }
  return kPointwise;
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "handlers.hpp"

namespace tenon::onednn {
namespace {

constexpr Handler kHandlers[] = {
    {"AveragePool", refuse_pool, lower_pool},
    {"BatchNormalization", refuse_batch_norm, lower_batch_norm},
    {"Cast", refuse_cast, lower_cast},
    {"Concat", refuse_concat, lower_concat},
    {"Conv", refuse_conv, lower_conv},
    {"ConvTranspose", refuse_conv_transpose, lower_conv_transpose},
    {"DequantizeLinear", refuse_dequantize, lower_dequantize},
    {"Dropout", refuse_reshape, lower_reshape},
    {"Expand", refuse_expand, lower_expand},
    {"Flatten", refuse_reshape, lower_reshape},
    {"Gather", refuse_gather, lower_gather},
    {"Gemm", refuse_gemm, lower_gemm},
    {"GlobalAveragePool", refuse_global_pool, lower_global_pool},
    {"GlobalMaxPool", refuse_global_pool, lower_global_pool},
    {"Identity", refuse_reshape, lower_reshape},
    {"LayerNormalization", refuse_layer_norm, lower_layer_norm},
    {"LogSoftmax", refuse_softmax, lower_softmax},
    {"MatMul", refuse_matmul, lower_matmul},
    {"MaxPool", refuse_pool, lower_pool},
    {"Pad", refuse_pad, lower_pad},
    {"QuantizeLinear", refuse_quantize, lower_quantize},
    {"ReduceL1", refuse_reduce, lower_reduce},
    {"ReduceL2", refuse_reduce, lower_reduce},
    {"ReduceMax", refuse_reduce, lower_reduce},
    {"ReduceMean", refuse_reduce, lower_reduce},
    {"ReduceMin", refuse_reduce, lower_reduce},
    {"ReduceProd", refuse_reduce, lower_reduce},
    {"ReduceSum", refuse_reduce, lower_reduce},
    {"Reshape", refuse_reshape, lower_reshape},
    {"Resize", refuse_resize, lower_resize},
    {"Slice", refuse_slice, lower_slice},
    {"Softmax", refuse_softmax, lower_softmax},
    {"Split", refuse_split, lower_split},
    {"Squeeze", refuse_reshape, lower_reshape},
    {"Transpose", refuse_transpose, lower_transpose},
    {"Unsqueeze", refuse_reshape, lower_reshape},
};
constexpr Handler kPointwise = {"", refuse_pointwise, lower_pointwise};

}  // namespace

const Handler* find_handler(std::string_view op) {
  for (const Handler& handler : kHandlers) {
    if (handler.op == op) return &handler;
  }
  return &kPointwise;
}

}  // namespace tenon::onednn

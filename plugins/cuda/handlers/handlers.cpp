// SPDX-License-Identifier: Apache-2.0
#include "handlers.hpp"

#include <algorithm>

namespace tenon::cuda {
namespace {

constexpr Handler kHandlers[] = {
    {"AveragePool", refuse_pool, lower_pool},
    {"BatchNormalization", refuse_batch_norm, nullptr},  // taken apart by split_batch_norms
    {"Concat", refuse_concat, lower_concat},
    {"Conv", refuse_conv, lower_conv, why_no_convolution},
    {"ConvTranspose", refuse_conv, lower_conv, why_no_convolution},
    {"Dropout", refuse_view, lower_view},
    {"Expand", refuse_expand, lower_expand},
    {"Flatten", refuse_view, lower_view},
    {"Gather", refuse_gather, lower_gather},
    {"Gemm", refuse_gemm, lower_product, why_no_product},
    {"GlobalAveragePool", refuse_global_pool, lower_global_pool},
    {"GlobalMaxPool", refuse_global_pool, lower_global_pool},
    {"Identity", refuse_view, lower_view},
    {"LayerNormalization", refuse_norm, lower_norm},
    {"LogSoftmax", refuse_softmax, lower_softmax},
    {"MatMul", refuse_matmul, lower_product, why_no_product},
    {"MaxPool", refuse_pool, lower_pool},
    {"RMSNormalization", refuse_norm, lower_norm},
    {"ReduceL1", refuse_reduce, lower_reduce},
    {"ReduceL2", refuse_reduce, lower_reduce},
    {"ReduceMax", refuse_reduce, lower_reduce},
    {"ReduceMean", refuse_reduce, lower_reduce},
    {"ReduceMin", refuse_reduce, lower_reduce},
    {"ReduceProd", refuse_reduce, lower_reduce},
    {"ReduceSum", refuse_reduce, lower_reduce},
    {"ReduceSumSquare", refuse_reduce, lower_reduce},
    {"Reshape", refuse_view, lower_view},
    {"ScatterND", refuse_scatter, lower_scatter},
    {"Slice", refuse_slice, lower_slice},
    {"Softmax", refuse_softmax, lower_softmax},
    {"Split", refuse_split, lower_split},
    {"Squeeze", refuse_view, lower_view},
    {"Transpose", refuse_transpose, lower_transpose},
    {"Unsqueeze", refuse_view, lower_view},
    {"cuda.BatchGradients", refuse_nothing, lower_batch_gradients},
    {"cuda.BatchStatistics", refuse_nothing, lower_batch_statistics},
    {"cuda.LowPrecisionGemm", refuse_nothing, lower_product},
    {"cuda.Transposed", refuse_nothing, lower_transposed},
    {"tenon.AveragePoolGrad", refuse_pool_grad, lower_pool_grad},
    {"tenon.BatchNormGrad", refuse_batch_norm_grad, nullptr},  // likewise
    {"tenon.ConvInputGrad", refuse_conv, lower_conv, why_no_convolution},
    {"tenon.ConvWeightGrad", refuse_conv, lower_conv, why_no_convolution},
    {"tenon.LayerNormGrad", refuse_layer_norm_grad, lower_layer_norm_grad},
    {"tenon.MaxPoolGrad", refuse_pool_grad, lower_pool_grad},
    {"tenon.StopGradient", refuse_view, lower_view},
    {"tenon.SumTo", refuse_sum_to, lower_sum_to},
};

}  // namespace

std::span<const Handler> handlers() {
  return kHandlers;
}

const Handler* find_handler(const std::string& op) {
  const Handler* found = std::find_if(std::begin(kHandlers), std::end(kHandlers),
                                      [&](const Handler& row) { return op == row.op; });
  return found == std::end(kHandlers) ? nullptr : found;
}

std::string refuse_nothing(const Imported&, const NodeInfo&) {
  return {};
}

Dims without_leading_ones(Dims dims) {
  dims.erase(dims.begin(),
             std::find_if(dims.begin(), dims.end(), [](int64_t d) { return d != 1; }));
  return dims;
}

std::string float_suffix(uint32_t dtype) {
  return dtype == TN_F32 ? "f32" : dtype == TN_F16 ? "f16" : dtype == TN_BF16 ? "bf16" : "";
}

}  // namespace tenon::cuda

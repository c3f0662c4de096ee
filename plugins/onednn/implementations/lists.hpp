// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every list of implementations, by the names of its own.

#include "choice.hpp"

namespace tenon::onednn {

Names attention_grad_names();
Names conv_names();
Names conv_transpose_form_names();
Names conv_transpose_names();
Names conv_weight_grad_names();
Names int4_product_names();
Names matmul_integer_form_names();
Names matmul_integer_names();
Names onednn_conv_form_names();
Names onednn_product_form_names();
Names pointwise_names();
Names pool_names();
Names product_names();
Names reduce_any_names();
Names reduce_names();
Names resize_names();
Names scores_names();

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "choice.hpp"

#include <array>

#include "lists.hpp"

namespace tenon::onednn {
namespace {

// check_listed() refuses a list with a name that is in none of these.
constexpr std::array kLists = {
    attention_grad_names,
    conv_names,
    conv_transpose_form_names,
    conv_transpose_names,
    conv_weight_grad_names,
    int4_product_names,
    matmul_integer_form_names,
    matmul_integer_names,
    onednn_conv_form_names,
    onednn_product_form_names,
    pointwise_names,
    pool_names,
    product_names,
    reduce_any_names,
    reduce_names,
    resize_names,
    scores_names,
};

}  // namespace

const Names& implementation_names() {
  static const Names all = [] {
    Names names;
    for (const auto& list : kLists)
      names.merge(list());
    return names;
  }();
  return all;
}

}  // namespace tenon::onednn

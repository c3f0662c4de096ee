// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this backend can run. A handler says why it refuses a node (empty: it does not), and adds
// the steps of one that it takes. A new operator is a pair of functions and a row in handlers.cpp;
// operators whose row has an expression need neither.

#include <span>
#include <string>

#include "lowering.hpp"

namespace tenon::cuda {

struct Handler {
  const char* op;
  std::string (*refuse)(const Imported&, const NodeInfo&);
  void (*lower)(Lowering&, const NodeInfo&);  // NULL: the node becomes others before
  // Why the library that computes the node has no plan for it; empty: it has one. Asked last.
  std::string (*why_no_plan)(const Imported&, const NodeInfo&, const Target&) = nullptr;
};

std::span<const Handler> handlers();
const Handler* find_handler(const std::string& op);

std::string refuse_view(const Imported&, const NodeInfo&);
void lower_view(Lowering&, const NodeInfo&);
std::string refuse_transpose(const Imported&, const NodeInfo&);
void lower_transpose(Lowering&, const NodeInfo&);
std::string refuse_slice(const Imported&, const NodeInfo&);
void lower_slice(Lowering&, const NodeInfo&);
std::string refuse_split(const Imported&, const NodeInfo&);
void lower_split(Lowering&, const NodeInfo&);
std::string refuse_concat(const Imported&, const NodeInfo&);
void lower_concat(Lowering&, const NodeInfo&);
std::string refuse_expand(const Imported&, const NodeInfo&);
void lower_expand(Lowering&, const NodeInfo&);
std::string refuse_gather(const Imported&, const NodeInfo&);
void lower_gather(Lowering&, const NodeInfo&);
std::string refuse_matmul(const Imported&, const NodeInfo&);
std::string refuse_gemm(const Imported&, const NodeInfo&);
// cuda.LowPrecisionGemm is one of 8-bit numbers, the second operand with its last axes transposed:
// made by low_precision_gemm.
void lower_product(Lowering&, const NodeInfo&);
// The product that a node is, with what follows in it; a buffer only says that there is one.
Product product_of(const Imported&, const NodeInfo&, const Lowering::Epilogue&);
// Of the last two axes, transposed or not as they lie. Sizes alone.
Product batched_product(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b);
std::string why_no_product(const Imported&, const NodeInfo&, const Target&);
std::string refuse_nothing(const Imported&, const NodeInfo&);
void lower_transposed(Lowering&, const NodeInfo&);
std::string refuse_softmax(const Imported&, const NodeInfo&);
void lower_softmax(Lowering&, const NodeInfo&);
std::string refuse_norm(const Imported&, const NodeInfo&);
void lower_norm(Lowering&, const NodeInfo&);
std::string refuse_reduce(const Imported&, const NodeInfo&);
void lower_reduce(Lowering&, const NodeInfo&);
std::string refuse_global_pool(const Imported&, const NodeInfo&);
void lower_global_pool(Lowering&, const NodeInfo&);
std::string refuse_pool(const Imported&, const NodeInfo&);
void lower_pool(Lowering&, const NodeInfo&);
std::string refuse_pool_grad(const Imported&, const NodeInfo&);
void lower_pool_grad(Lowering&, const NodeInfo&);
std::string refuse_sum_to(const Imported&, const NodeInfo&);
void lower_sum_to(Lowering&, const NodeInfo&);
std::string refuse_batch_norm(const Imported&, const NodeInfo&);
void lower_batch_statistics(Lowering&, const NodeInfo&);
std::string refuse_batch_norm_grad(const Imported&, const NodeInfo&);
void lower_batch_gradients(Lowering&, const NodeInfo&);
std::string refuse_layer_norm_grad(const Imported&, const NodeInfo&);
void lower_layer_norm_grad(Lowering&, const NodeInfo&);
std::string refuse_scatter(const Imported&, const NodeInfo&);
void lower_scatter(Lowering&, const NodeInfo&);
std::string refuse_conv(const Imported&, const NodeInfo&);
void lower_conv(Lowering&, const NodeInfo&);
// The convolution that a node is, with what follows in it; a buffer only says that there is one.
Convolution convolution_of(const Imported&, const NodeInfo&, const Lowering::Epilogue&);
// Why there is no plan for the node; empty: there is one, with its bias or with that apart.
std::string why_no_convolution(const Imported&, const NodeInfo&, const Target&);
// Whether there is a plan that adds the node's own bias.
bool adds_bias(const Imported&, const NodeInfo&, const Target&);

Dims without_leading_ones(Dims dims);
// The kernel's name for a floating-point type: f32, f16, bf16; empty for any other.
std::string float_suffix(uint32_t dtype);

}  // namespace tenon::cuda

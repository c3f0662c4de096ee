// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm by cuBLASLt.

#include <algorithm>

#include "handlers.hpp"

namespace tenon::cuda {
namespace {

std::string refuse_operands(const Imported& graph, const NodeInfo& node) {
  const ValueInfo& a = graph.value(node.in[0]);
  const ValueInfo& b = graph.value(node.in[1]);
  if (real_suffix(a.dtype).empty()) return cat("no product of ", dtype_name(a.dtype));
  if (a.dtype != b.dtype) return "operands of two types";
  if (a.dims.size() < 2 || b.dims.size() < 2) return "a product with a vector";
  if (a.count() == 0 || b.count() == 0) return "an empty tensor";
  return {};
}

int64_t batches(const Dims& dims) {
  return element_count(std::span(dims).first(dims.size() - 2));
}

// The batch axes without leading ones.
Dims batch_dims(const Dims& dims) {
  Dims out(dims.begin(), dims.end() - 2);
  out.erase(out.begin(), std::find_if(out.begin(), out.end(), [](int64_t d) { return d != 1; }));
  return out;
}

void add_product(Lowering& lowering, const NodeInfo& node, Product product) {
  Lowering::Tail tail = lowering.tail_of(node);
  const ValueInfo& out = lowering.value(tail.out);
  if (tail.bias != kAbsent) product.bias = lowering.buffer(tail.bias);
  if (tail.residual != kAbsent) {
    product.c = lowering.buffer(tail.residual);
    product.beta = 1;
  }
  product.activation = tail.activation;
  product.dtype = lowering.value(node.in[0]).dtype;
  product.b_dtype = lowering.value(node.in[1]).dtype;
  product.out_dtype = out.dtype;
  product.out = lowering.buffer(tail.out);
  Step step{node.name, node.op, "cublaslt", product, {product.a, product.b}, {product.out}, 0, 0};
  for (int extra : {product.bias, product.c}) {
    if (extra >= 0) step.reads.push_back(extra);
  }
  step.flops = 2.0 * static_cast<double>(product.batch) * static_cast<double>(product.m) *
               static_cast<double>(product.n) * static_cast<double>(product.k);
  step.bytes = static_cast<double>(lowering.value(node.in[0]).bytes() +
                                   lowering.value(node.in[1]).bytes() + out.bytes());
  lowering.add(std::move(step));
}

}  // namespace

std::string refuse_matmul(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_operands(graph, node); !why.empty()) return why;
  const Dims& a = graph.value(node.in[0]).dims;
  const Dims& b = graph.value(node.in[1]).dims;
  if (batches(a) != 1 && batches(b) != 1 && batch_dims(a) != batch_dims(b)) {
    return "batch axes of which some are broadcast";
  }
  return {};
}

namespace {

// Of the last two axes, those of b turned or not.
void lower_batched(Lowering& lowering, const NodeInfo& node, bool transpose_b) {
  const Dims& a = lowering.value(node.in[0]).dims;
  const Dims& b = lowering.value(node.in[1]).dims;
  Product product;
  product.transpose_b = transpose_b;
  product.a = lowering.buffer(node.in[0]);
  product.b = lowering.buffer(node.in[1]);
  product.m = a[a.size() - 2];
  product.k = a.back();
  product.n = transpose_b ? b[b.size() - 2] : b.back();
  if (batches(b) == 1) {
    product.m *= batches(a);  // one large product in place of many
  } else {
    product.batch = batches(b);
    product.stride_a = batches(a) == 1 ? 0 : product.m * product.k;
    product.stride_b = product.k * product.n;
  }
  add_product(lowering, node, product);
}

}  // namespace

void lower_matmul(Lowering& lowering, const NodeInfo& node) {
  lower_batched(lowering, node, false);
}

void lower_narrow_product(Lowering& lowering, const NodeInfo& node) {
  lower_batched(lowering, node, true);
}

void lower_turned(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& out = lowering.value(node.out[0]);
  Dims strides = row_major(lowering.value(node.in[0]).dims);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  lowering.add_strided_copy(node, out.dtype, out.dims, {lowering.buffer(node.in[0]), strides, 0},
                            {lowering.buffer(node.out[0]), row_major(out.dims), 0});
}

std::string refuse_gemm(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_operands(graph, node); !why.empty()) return why;
  if (node.input(2) == kAbsent) return {};
  const ValueInfo& c = graph.value(node.input(2));
  const Dims& out = graph.value(node.out[0]).dims;
  if (c.dims == out) return {};
  bool is_row = c.count() == out[1] && !c.dims.empty() && c.dims.back() == out[1];
  if (!is_row) return "a C that is neither a row nor a matrix";
  if (node.source.attr_float("beta", 1) != 1) return "beta with a C that is a row";
  return {};
}

void lower_gemm(Lowering& lowering, const NodeInfo& node) {
  const Dims& a = lowering.value(node.in[0]).dims;
  const Dims& out = lowering.value(node.out[0]).dims;
  Product product;
  product.transpose_a = node.source.attr_int("transA", 0) != 0;
  product.transpose_b = node.source.attr_int("transB", 0) != 0;
  product.a = lowering.buffer(node.in[0]);
  product.b = lowering.buffer(node.in[1]);
  product.m = out[0];
  product.n = out[1];
  product.k = product.transpose_a ? a[0] : a[1];
  product.alpha = node.source.attr_float("alpha", 1);
  if (int c = node.input(2); c != kAbsent) {
    bool is_matrix = lowering.value(c).dims == out;
    (is_matrix ? product.c : product.bias) = lowering.buffer(c);
    if (is_matrix) product.beta = node.source.attr_float("beta", 1);
  }
  add_product(lowering, node, product);
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm by cuBLASLt.

#include <algorithm>

#include "handlers.hpp"

namespace tenon::cuda {
namespace {

std::string refuse_operands(const Imported& graph, const NodeInfo& node) {
  const ValueInfo& a = graph.value(node.inputs[0]);
  const ValueInfo& b = graph.value(node.inputs[1]);
  if (float_suffix(a.dtype).empty()) return cat("no product of ", dtype_name(a.dtype));
  if (a.dtype != b.dtype) return "operands of two types";
  if (a.dims.size() < 2 || b.dims.size() < 2) return "a product with a vector";
  if (a.count() == 0 || b.count() == 0) return "an empty tensor";
  return {};
}

int64_t batches(const Dims& dims) {
  return element_count(std::span(dims).first(dims.size() - 2));
}

Dims batch_dims(const Dims& dims) {
  return without_leading_ones({dims.begin(), dims.end() - 2});
}

}  // namespace

std::string refuse_matmul(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_operands(graph, node); !why.empty()) return why;
  const Dims& a = graph.value(node.inputs[0]).dims;
  const Dims& b = graph.value(node.inputs[1]).dims;
  if (batches(a) != 1 && batches(b) != 1 && batch_dims(a) != batch_dims(b)) {
    return "batch axes of which some are broadcast";
  }
  return {};
}

Product batched_product(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b) {
  Product product;
  product.transpose_a = transpose_a;
  product.transpose_b = transpose_b;
  product.m = transpose_a ? a.back() : a[a.size() - 2];
  product.k = transpose_a ? a[a.size() - 2] : a.back();
  product.n = transpose_b ? b[b.size() - 2] : b.back();
  if (batches(b) == 1 && (!transpose_a || batches(a) == 1)) {
    product.m *= batches(a);  // one large product in place of many
  } else {
    product.batch = std::max(batches(a), batches(b));
    product.stride_a = batches(a) == 1 ? 0 : product.m * product.k;
    product.stride_b = batches(b) == 1 ? 0 : product.k * product.n;
  }
  return product;
}

void lower_transposed(Lowering& lowering, const NodeInfo& node) {
  const ValueInfo& out = lowering.value(node.outputs[0]);
  Dims strides = backend::row_major_strides(lowering.value(node.inputs[0]).dims);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  lowering.add_strided_copy(
      node, out.dtype, out.dims, {lowering.buffer(node.inputs[0]), strides, 0},
      {lowering.buffer(node.outputs[0]), backend::row_major_strides(out.dims), 0});
}

std::string refuse_gemm(const Imported& graph, const NodeInfo& node) {
  if (std::string why = refuse_operands(graph, node); !why.empty()) return why;
  if (node.input(2) == kNone) return {};
  const ValueInfo& c = graph.value(node.input(2));
  const Dims& out = graph.value(node.outputs[0]).dims;
  if (c.dims == out) return {};
  bool is_row = c.count() == out[1] && !c.dims.empty() && c.dims.back() == out[1];
  if (!is_row) return "a C that is neither a row nor a matrix";
  if (node.source.attr_float("beta", 1) != 1) return "beta with a C that is a row";
  return {};
}

namespace {

constexpr int kThere = 0;  // in the place of a buffer

Product gemm_product(const Imported& graph, const NodeInfo& node) {
  const Dims& a = graph.value(node.inputs[0]).dims;
  const Dims& out = graph.value(node.outputs[0]).dims;
  Product product;
  product.transpose_a = (node.source.attr_int("transA", 0) != 0) != node.is_exchanged[0];
  product.transpose_b = (node.source.attr_int("transB", 0) != 0) != node.is_exchanged[1];
  product.m = out[0];
  product.n = out[1];
  product.k = product.transpose_a ? a[0] : a[1];
  product.alpha = node.source.attr_float("alpha", 1);
  if (int c = node.input(2); c != kNone) {
    bool is_matrix = graph.value(c).dims == out;
    (is_matrix ? product.c : product.bias) = kThere;
    if (is_matrix) product.beta = node.source.attr_float("beta", 1);
  }
  return product;
}

}  // namespace

Product product_of(const Imported& graph,
                   const NodeInfo& node,
                   const Lowering::Epilogue& epilogue) {
  const ValueInfo& a = graph.value(node.inputs[0]);
  const ValueInfo& b = graph.value(node.inputs[1]);
  bool is_low_precision = node.op == "cuda.LowPrecisionGemm";
  Product product = node.op == "Gemm" ? gemm_product(graph, node)
                                      : batched_product(a.dims, b.dims, node.is_exchanged[0],
                                                        node.is_exchanged[1] || is_low_precision);
  product.a = product.b = product.out = kThere;
  product.dtype = a.dtype;
  product.b_dtype = b.dtype;
  product.out_dtype = graph.value(epilogue.out).dtype;
  product.activation = epilogue.activation;
  if (epilogue.bias != kNone) product.bias = kThere;
  if (epilogue.residual != kNone) {
    product.c = kThere;
    product.beta = 1;
  }
  return product;
}

std::string why_no_product(const Imported& graph, const NodeInfo& node, const Target& target) {
  if (!target.why_no_product) return {};
  return target.why_no_product(product_of(graph, node, Lowering::no_epilogue(node)));
}

void lower_product(Lowering& lowering, const NodeInfo& node) {
  Lowering::Epilogue epilogue = lowering.epilogue_of(node);
  Product product = product_of(lowering.graph(), node, epilogue);
  product.a = lowering.buffer(node.inputs[0]);
  product.b = lowering.buffer(node.inputs[1]);
  auto added = [&](int in_epilogue) {
    return lowering.buffer(in_epilogue != kNone ? in_epilogue : node.input(2));
  };
  if (product.bias >= 0) product.bias = added(epilogue.bias);
  if (product.c >= 0) product.c = added(epilogue.residual);
  product.out = lowering.buffer(epilogue.out);
  Step step{node.name, node.op, "cublaslt", product, {product.a, product.b}, {product.out}, 0, 0};
  for (int extra : {product.bias, product.c}) {
    if (extra >= 0) step.reads.push_back(extra);
  }
  step.flops = 2.0 * static_cast<double>(product.batch) * static_cast<double>(product.m) *
               static_cast<double>(product.n) * static_cast<double>(product.k);
  for (int value : {node.inputs[0], node.inputs[1], epilogue.out})
    step.bytes += static_cast<double>(lowering.value(value).bytes());
  lowering.add(std::move(step));
}

}  // namespace tenon::cuda

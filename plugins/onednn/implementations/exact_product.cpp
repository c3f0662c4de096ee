// SPDX-License-Identifier: Apache-2.0
// MatMul in f64 and in integers of 32 and 64 bits, which oneDNN has not. The importer names it
// apart (".any"), so that no rewrite takes it for a product of f32.

#include "kernels/exact_product.h"

#include <algorithm>

#include "dense.hpp"
#include "stack_starts.hpp"

namespace tenon::onednn {
namespace {

// A vector is a matrix with one row on the left, with one column on the right.
Dims as_matrices(const Value& value, bool is_left) {
  Dims dims = value.dims;
  if (dims.size() == 1) dims.insert(is_left ? dims.begin() : dims.end(), 1);
  return dims;
}

std::vector<int64_t> starts_of(const Dims& operand, const Dims& stack) {
  return stack_starts(operand, row_major_strides(operand), stack);
}

}  // namespace

std::string refuse_exact_product(const Graph& graph, const Node& node) {
  const Value& a = graph.values[node.inputs[0]];
  const Value& b = graph.values[node.inputs[1]];
  if (a.type != b.type || !kernels::is_exact_product_type(a.type))
    return "only f32, f64 and integers of 32 and 64 bits";
  return a.dims.empty() || b.dims.empty() ? "a scalar" : "";
}

void lower_exact_product(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims a = as_matrices(graph.values[node.inputs[0]], true);
  const Dims b = as_matrices(graph.values[node.inputs[1]], false);
  Dims stack = graph.values[node.outputs[0]].dims;  // in front of the axes of matrices
  for (int input : {node.inputs[0], node.inputs[1]})
    if (graph.values[input].dims.size() > 1) stack.pop_back();
  kernels::ExactProductArgs args;
  args.type = graph.values[node.inputs[0]].type;
  args.m = a[a.size() - 2];
  args.k = args.a_row = a.back();
  args.n = args.b_k = b.back();
  args.a_k = args.b_column = 1;
  const int64_t room_bytes = kernels::exact_product_bytes(args);
  lower_dense(
      lowering, index, "tenon:exact_product",
      [args, room_bytes, of_a = starts_of(a, stack), of_b = starts_of(b, stack)](
          const kernels::Context& context, void* const* pointers) -> const char* {
        kernels::ExactProductArgs now = args;
        now.a_starts = of_a;
        now.b_starts = of_b;
        now.a = pointers[0];
        now.b = pointers[1];
        now.dst = pointers[2];
        now.room = room_bytes > 0 ? pointers[3] : nullptr;
        kernels::exact_product(context, now);
        return nullptr;
      },
      room_bytes);
  lowering.plan().steps.back().always_succeeds = true;
}

}  // namespace tenon::onednn

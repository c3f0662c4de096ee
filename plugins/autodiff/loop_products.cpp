// SPDX-License-Identifier: Apache-2.0
#include "loop_products.hpp"

#include <algorithm>

#include "joint.hpp"

namespace tenon::autodiff {
namespace {

constexpr int64_t kMostStates = 4;

// What is added to a product is not read by any gradient: the sum stands for both.
Value with_what_is_added(Value product) {
  Value out = product;
  while (out.consumer_count() == 1 && !out.is_output() && out.consumer(0).is("Add")) {
    Value sum = out.consumer(0).output();
    if (sum.type().dims != out.type().dims || sum.dtype() != out.dtype()) break;
    out = sum;
  }
  return out;
}

}  // namespace

std::vector<Value> products_to_keep(Graph body, const Interface& parts) {
  int64_t states = 0, bytes = 0;
  std::vector<Value> inputs = body.inputs(), out;
  for (size_t i = 0; i < parts.n_states; ++i)
    states += bytes_of(inputs[parts.n_first + i]);
  for (Node node : body.nodes()) {
    if (!node.is("MatMul") && !node.is("Gemm")) continue;
    Value value = with_what_is_added(node.output());
    if (value.is_output() || !value.type().is_static() || !is_float(value.dtype())) continue;
    out.push_back(value);
    bytes += bytes_of(value);
  }
  if (bytes > kMostStates * states) out.clear();
  return out;
}

std::optional<RowsProduct> worth_a_product(Value gradient, std::span<const Value> there) {
  Node product = gradient ? gradient.producer() : Node{};
  if (!product || !product.is("MatMul")) return {};
  Node swapped = product.input(0).producer();
  if (!swapped || !swapped.is("Transpose")) return {};
  RowsProduct out{swapped.input(0), product.input(1)};
  int64_t more = 0;
  for (Value side : {out.left, out.right}) {
    const Type type = side.type();
    if (!type.is_static() || type.rank() != 2 || type.elements() == 0) return {};
    bool is_there = std::ranges::any_of(there, [side](Value v) { return v && v.id == side.id; });
    if (side.producer() && !is_there) more += bytes_of(side);
  }
  if (more > bytes_of(gradient)) return {};
  return out;
}

Value product_over_steps(Builder& b, Value left, Value right) {
  auto rows = [&](Value x) { return b.reshape(x, {-1, x.type().dims.back()}); };
  return b.op("MatMul", {b.transpose(rows(left), {1, 0}), rows(right)});
}

}  // namespace tenon::autodiff

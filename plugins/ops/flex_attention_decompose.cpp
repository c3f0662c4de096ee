// SPDX-License-Identifier: Apache-2.0
// FlexAttention from smaller operators, its bodies among them, for gradients, vmap and fusion.
// Where all sizes are known.
#include <cmath>

#include "tenon/sdk/build.hpp"

#include "bodies.hpp"
#include "flex_attention.hpp"

namespace tenon::ops::flex {
namespace {

// The body `name` of x in its place, where the node has one.
Result<Value> through_body(EditView edit, Node node, std::string_view name, Value x) {
  Graph body = graph_of(node, name);
  if (!body.raw) return x;
  std::vector<Value> inputs = body.inputs(), outputs = body.outputs();
  auto captures = static_cast<size_t>(node.attr_int("captures"));
  if (inputs.size() != captures + 1 || outputs.empty())
    return invalid(cat("body ", name, ": expected ", captures + 1, " inputs and a result, got ",
                       inputs.size(), " and ", outputs.size()));
  std::vector<tn_value_id> map{inputs[0].id, x.id};
  for (size_t i = 0; i < captures; ++i)
    map.insert(map.end(), {inputs[i + 1].id, node.input(node.n_inputs() - captures + i).id});
  size_t result = map.size() + 1;
  for (Value output : outputs)
    map.insert(map.end(), {output.id, 0});
  TN_CHECK(Status(
      services.edit->splice(edit.raw, body.raw, str(node.scope()), map.data(), map.size() / 2)));
  return edit.value(map[result]);
}

// Each head of keys or values for all heads of queries that share it.
Value for_all_heads(Builder& b, Value x, int64_t heads) {
  const std::vector<int64_t>& dims = x.type().dims;
  int64_t times = heads / dims[1];
  if (times == 1) return x;
  Value wide = b.op("Unsqueeze", {x, b.ints({2})});
  Value all = b.op("Expand", {wide, b.ints({dims[0], dims[1], times, dims[2], dims[3]})});
  return b.reshape(all, {dims[0], heads, dims[2], dims[3]});
}

}  // namespace

Result<std::vector<Value>> decomposed(EditView edit, Node node) {
  Value q = node.input(0), k = node.input(1), v = node.input(2);
  for (Value x : {q, k, v})
    if (!x.type().is_static() || x.type().rank() != 4)
      return unsupported("FlexAttention: composite where all sizes are known");
  int64_t heads = q.type().dims[1], shared = k.type().dims[1];
  if (shared < 1 || heads % shared != 0)
    return invalid(cat("heads of q: expected a multiple of ", shared, ", got ", heads));
  TN_TRY(dtype, softmax_type(node, q.dtype()));
  Builder b(edit);
  double scale = node.attr_float("scale", 1 / std::sqrt(static_cast<double>(q.type().dims[3])));
  Value root = b.number(std::sqrt(scale), q.dtype());
  Value across = b.transpose(for_all_heads(b, k, heads), {0, 1, 3, 2});
  Value scores = b.cast(b.op("MatMul", {b.mul(q, root), b.mul(across, root)}), dtype);
  TN_CHECK(b.status());
  TN_TRY(changed, through_body(edit, node, "score_mod", scores));
  Value shares = b.op("Softmax", {changed}, {{"axis", -1}});
  TN_CHECK(b.status());
  TN_TRY(weights, through_body(edit, node, "prob_mod", shares));
  Value y = b.op("MatMul", {b.cast(weights, v.dtype()), for_all_heads(b, v, heads)});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

}  // namespace tenon::ops::flex

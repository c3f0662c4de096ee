// SPDX-License-Identifier: Apache-2.0
#include "stored_moves.hpp"

#include <algorithm>
#include <numeric>

#include "fold_stored.hpp"
#include "graph_outputs.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

constexpr int kDeepest = 8;  // moves behind one another

// Whether all that a value is made of is constants in few bits, moved.
bool is_moved_constant(Value v, int depth = 0) {
  if (!is_narrow(v)) return false;
  if (v.is_constant()) return true;
  const Node node = v.producer();
  if (!node || depth == kDeepest || node.n_outputs() != 1 || writes_zeros(node)) return false;
  if (role_of(node).kind != Kind::kSameScale) return false;
  const std::vector<Value> inputs = node.inputs();
  return std::ranges::all_of(inputs, [&](Value one) {
    return !one || one.dtype() != v.dtype() || is_moved_constant(one, depth + 1);
  });
}

// The floats of v, with the scale and zero point of the DequantizeLinear.
Result<Value> floats_of(EditView edit, Node dequantize, Value v) {
  if (v.is_constant()) {
    std::vector<Value> inputs = dequantize.inputs();
    inputs[0] = v;
    return edit.op("DequantizeLinear", inputs);
  }
  const Node node = v.producer();
  std::vector<Value> inputs = node.inputs();
  for (Value& one : inputs) {
    if (!one || one.dtype() != v.dtype()) continue;
    TN_TRY(floats, floats_of(edit, dequantize, one));
    one = floats;
  }
  TN_TRY(made, added_again(edit, node, inputs, cat(node.name(), "_float")));
  return made.output();
}

}  // namespace

Status part_lookups(EditView edit) {
  for (Node node : edit.graph().nodes()) {
    if (node.type() != "GatherBlockQuantized" || node.domain() != "com.microsoft") continue;
    std::vector<Value> inputs = node.inputs();
    const Value indices = inputs[1];
    inputs[1] = {};
    const bool is_stored =
        std::ranges::all_of(inputs, [&](Value v) { return !v || v.is_constant(); });
    if (!is_stored || indices.is_constant()) continue;
    const Type data = inputs[0].type();
    const int64_t axis = positive_axis(node.attr_int("gather_axis"), data.rank());
    if (axis < 0 || static_cast<size_t>(axis) >= data.rank()) continue;
    std::vector<int64_t> all(static_cast<size_t>(data.dims[static_cast<size_t>(axis)]));
    std::iota(all.begin(), all.end(), 0);
    TN_TRY(each, edit.constant<int64_t>(TN_I64, {static_cast<int64_t>(all.size())}, all));
    inputs[1] = each;
    TN_TRY(table, added_again(edit, node, inputs, cat(node.name(), "_table")));
    TN_TRY(rows, edit.add({.type = "Gather",
                           .inputs = {table.output(), indices},
                           .attrs = {{"axis", axis}},
                           .name = cat(node.name(), "_float"),
                           .scope = node.scope()}));
    TN_CHECK(give_out(edit, node.output(), rows.output()));
    TN_CHECK(edit.replace(node.output(), rows.output()));
  }
  return {};
}

Result<Value> moved_floats(EditView edit, Node dequantize) {
  const Value stored = dequantize.input(0), scale = dequantize.input(1), zero = dequantize.input(2);
  const bool is_known = scale.is_constant() && (!zero || zero.is_constant());
  if (!is_known || scale.type().elements() != 1) return Value{};
  if (stored.is_constant() || !is_moved_constant(stored)) return Value{};
  return floats_of(edit, dequantize, stored);
}

}  // namespace tenon::quantizer

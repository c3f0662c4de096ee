// SPDX-License-Identifier: Apache-2.0
#include "integer_rewriting.hpp"

#include <algorithm>
#include <unordered_set>

#include "tenon/sdk/alike.hpp"

#include "assignment.hpp"
#include "float_nodes.hpp"
#include "integer_rules.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

constexpr std::string_view kNotStored = "it has not one constant scale and 8 bits";

bool is_alike(const Integers& x, const Integers& y) {
  return x.table == y.table && x.zero == y.zero && x.scale == y.scale && x.value && y.value &&
         x.value.dtype() == y.value.dtype();
}

}  // namespace

Status Rewriting::run() {
  for (Node node : edit_.graph().nodes()) {
    TN_CHECK(take(node).in(node.name()));
    TN_CHECK(n_.status().in(node.name()));
  }
  TN_CHECK(hand_over());
  return erase_unused(edit_);
}

const Integers* Rewriting::known(Value v) const {
  auto at = v ? known_.find(v.id) : known_.end();
  return at == known_.end() ? nullptr : &at->second;
}

Status Rewriting::refuse(Node node, std::string_view why) {
  refused_.push_back({{"node", node.name()}, {"op", node.type()}, {"why", why}});
  return {};
}

Status Rewriting::take(Node node) {
  static const std::unordered_map<std::string_view, Handler> kHandlers = {
      {"DequantizeLinear", &Rewriting::dequantize},
      {"QuantizeLinear", &Rewriting::quantize},
      {"Conv", &Rewriting::product},
      {"Gemm", &Rewriting::product},
      {"MatMul", &Rewriting::product},
      {"Relu", &Rewriting::clip},
      {"Clip", &Rewriting::clip},
      {"Add", &Rewriting::add},
      {"Max", &Rewriting::bound},
      {"Min", &Rewriting::bound},
      {"Mul", &Rewriting::factor},
      {"Div", &Rewriting::factor},
      {"GlobalAveragePool", &Rewriting::mean},
      {"ReduceMean", &Rewriting::mean},
      {"Softmax", &Rewriting::softmax}};
  if (!node.domain().empty() && node.domain() != "ai.onnx") return {};
  auto found = kHandlers.find(node.type());
  if (found != kHandlers.end()) return (this->*found->second)(node);
  if (role_of(node).kind == Kind::kSameScale) return move(node);
  bool reads_known = false;
  for (Value v : node.inputs())
    reads_known |= known(v) != nullptr;
  return reads_known ? table(node) : Status();
}

// ---- the borders of integers ----

Status Rewriting::dequantize(Node node) {
  std::optional<Stored8> from = storage_of(node);
  Value stored = node.input(0);
  if (stored.is_constant()) return {};
  if (!from || stored.dtype() != from->dtype)
    return node.output().consumer_count() > 0 ? refuse(node, kNotStored) : Status();
  const double most =
      static_cast<double>(std::max(from->high() - from->zero, from->zero - from->low()));
  known_[node.output().id] = {stored, {from->scale}, 0, from->zero, {most}, {}};
  return {};
}

Status Rewriting::quantize(Node node) {
  const Integers* x = known(node.input(0));
  std::optional<Stored8> to = storage_of(node);
  if (!x) return {};
  if (!to) return refuse(node, kNotStored);
  Value made = n_.requantize(*x, *to);
  TN_CHECK(n_.status());
  return edit_.replace(node.output(), made);
}

// ---- numbers that stay what they are ----

// What compares numbers, or writes zeros, has to see numbers and not indices: tables are looked up.
Status Rewriting::move(Node node) {
  std::optional<Integers> first;
  std::vector<Value> inputs = node.inputs();
  bool are_alike = true;
  for (uint64_t i : data_inputs(node)) {
    const Integers* x = known(inputs[i]);
    if (!x) {
      are_alike = false;
      continue;
    }
    const Integers seen = x->table.empty() ? *x : n_.wide(*x);
    if (!first) first = seen;
    are_alike = are_alike && is_alike(seen, *first);
    inputs[i] = seen.value;
  }
  if (!first) return {};
  if (!are_alike) return refuse(node, "not all of its inputs are integers of one scale");
  if (first->scale.size() > 1) return refuse(node, "it moves sums with a scale for each channel");
  for (Value v : inputs)
    if (holds_floats(v)) return refuse(node, "it reads a float constant");
  if (writes_zeros(node) && first->zero != 0) return refuse(node, "its zeros are not stored as 0");
  Integers out = *first;
  Result<Node> made = added_again(edit_, node, inputs);
  if (!made.ok()) return refuse(node, made.status().text());
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    if (!node.output(i)) continue;
    out.value = made->output(i);
    known_[node.output(i).id] = out;
  }
  return {};
}

Status Rewriting::softmax(Node node) {
  const Integers* x = known(node.input(0));
  if (!x) return {};
  if (!x->is_stored()) return refuse(node, "its input is a sum that was not rounded to 8 bits");
  Integers out = n_.softmax(*x, node.attr_int("axis", -1));
  known_[node.output().id] = out;
  return {};
}

// ---- what is left over ----

// Sums that float nodes or the graph's outputs still read: as int32 behind a DequantizeLinear.
Status Rewriting::hand_over() {
  std::vector<Value> open = edit_.graph().outputs();
  std::unordered_set<tn_value_id> seen;
  while (!open.empty()) {
    Value v = open.back();
    open.pop_back();
    if (!v || !v.producer() || !seen.insert(v.id).second) continue;
    const Integers* x = v.producer().is("DequantizeLinear") ? nullptr : known(v);
    if (!x) {
      for (Value input : v.producer().inputs())
        open.push_back(input);
      continue;
    }
    Value real = n_.real(*x, std::string(v.name()));
    TN_CHECK(n_.status());
    TN_CHECK(edit_.replace(v, real));
  }
  return {};
}

Result<nlohmann::ordered_json> rewrite_in_integers(tn_ctx* ctx, EditView edit) {
  Rewriting rewriting(ctx, edit);
  TN_CHECK(rewriting.run());
  return rewriting.refused();
}

}  // namespace tenon::quantizer

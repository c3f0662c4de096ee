// SPDX-License-Identifier: Apache-2.0
// "quantizer.dequantize": a quantized model in floating point again, whoever quantized it and in
// whatever form (QDQ, 8-bit operators, dynamic, weights alone): the way to quantize it anew.
// Weights are what their stored values stand for; roundings of activations go. Where one also cuts
// values off, as it does in files whose Relu the quantizer has left to the range, a Clip stays.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/plan.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "dynamic_form.hpp"
#include "float_nodes.hpp"
#include "graph_outputs.hpp"
#include "integer_values.hpp"
#include "pointwise_values.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

// Of a constant; none: of another kind.
std::string_view bytes_in(const Tensor& tensor) {
  const DLTensor t = tensor.dl();
  return {data_of<const char>(t), bytes_of(dtype_of(t), element_count(t))};
}

bool is_same(Value a, Value b) {
  if (!a || !b || a == b) return a == b;
  if (!a.is_constant() || !b.is_constant() || a.dtype() != b.dtype()) return false;
  const Tensor left = a.constant(), right = b.constant();
  return bytes_in(left) == bytes_in(right);
}

bool is_zero_point_of_zeros(Value zero) {
  if (!zero) return true;
  if (!zero.is_constant()) return false;
  const Tensor tensor = zero.constant();
  return std::ranges::all_of(bytes_in(tensor), [](char byte) { return byte == 0; });
}

bool is_narrow(Value v) {
  return v && TN_DTYPE_CODE(v.dtype()) != kDLBool && !holds_floats(v) &&
         TN_DTYPE_BITS(v.dtype()) <= 16;
}

// An operator on stored values that its row writes with QuantizeLinear and DequantizeLinear.
bool is_expandable(Node node) {
  const tn_op* row = node.row();
  if (!row || !row->decompose) return false;
  if (role_of(node).kind != Kind::kInteger && node.domain() != "com.microsoft") return false;
  const std::vector<Value> in = node.inputs(), out = node.outputs();
  return std::ranges::any_of(in, is_narrow) &&
         std::ranges::none_of(out, [](Value v) { return v && v.dtype() == TN_I32; });
}

// Never negative: what a function of one number makes of numbers of all sizes, or what only moves
// such.
bool is_never_negative(tn_ctx* ctx, Value v) {
  Node node = v ? v.producer() : Node();
  for (int hops = 0; node && role_of(node).kind == Kind::kSameScale && hops < 8; ++hops)
    node = node.input(0).producer();
  if (!node || !is_pointwise_of_one(node)) return false;
  std::vector<float> numbers{0};
  for (int power = -20; power <= 20; ++power)
    for (float sign : {-1.0f, 1.0f})
      numbers.push_back(sign * std::ldexp(1.0f, power));
  Result<Tensor> made =
      values_at(ctx, std::span(&node, 1), numbers, {static_cast<int64_t>(numbers.size())});
  if (!made.ok() || dtype_of(made->dl()) != TN_F32) return false;
  const auto* first = made->data<float>();
  return std::all_of(first, first + numbers.size(), [](float y) { return y >= 0; });
}

// Operators on stored values as others between DequantizeLinear and QuantizeLinear. The number of
// activations that were rounded in them.
Result<uint64_t> expand(tn_graph* raw) {
  TN_TRY(edit, Edit::begin(raw));
  TN_TRY(dynamic, float_products(edit));
  for (Node node : edit.graph().nodes())
    if (is_expandable(node))
      TN_CHECK(Status(services.op->decompose(edit.raw, node.id)).in(node.name()));
  TN_CHECK(edit.commit());  // which puts nodes in order
  return dynamic;
}

class Dequantizing {
 public:
  Dequantizing(tn_ctx* ctx, EditView edit) : ctx_(ctx), edit_(edit) {}

  Status run() {
    for (Node node : edit_.graph().nodes())
      TN_CHECK(take(node).in(node.name()));
    return erase_unused(edit_);
  }
  uint64_t roundings() const { return roundings_; }

 private:
  // The floats that a stored value stands for, and how it is stored.
  struct Stored {
    Value floats, scale, zero;
    int64_t axis = 0, block = 0;
  };

  Status take(Node node) {
    const Kind kind = role_of(node).kind;
    if (kind == Kind::kQuantize) return quantize(node);
    if (kind == Kind::kDequantize) return dequantize(node);
    return kind == Kind::kSameScale ? move(node) : Status();
  }

  Status quantize(Node node) {
    if (!holds_floats(node.input(0)) || node.input(0).is_constant()) return {};
    TN_TRY(floats, cut_off(node));
    stored_[node.output().id] = {floats, node.input(1), node.input(2), node.attr_int("axis", 1),
                                 node.attr_int("block_size")};
    ++roundings_;
    return {};
  }

  // What is rounded, within the range that is left of it where the zero point is at its end.
  Result<Value> cut_off(Node node) {
    Value x = node.input(0);
    std::optional<Stored8> as = storage_of(node);
    const bool is_at_end = as && (as->zero == as->low() || as->zero == as->high());
    if (!is_at_end || x.dtype() != TN_F32) return x;
    if (as->zero == as->low() && is_never_negative(ctx_, x)) return x;
    std::array<Value, 2> ends;
    for (size_t i = 0; i < 2; ++i) {
      const double end =
          as->scale * static_cast<double>((i == 0 ? as->low() : as->high()) - as->zero);
      TN_TRY(made, edit_.constant<float>(TN_F32, {}, std::vector{static_cast<float>(end)}));
      ends[i] = made;
    }
    TN_TRY(clip, edit_.add({.type = "Clip",
                            .inputs = {x, ends[0], ends[1]},
                            .name = cat(node.name(), "_range"),
                            .scope = node.scope()}));
    return clip.output();
  }

  const Stored* stored(Value v) const {
    auto at = v ? stored_.find(v.id) : stored_.end();
    return at == stored_.end() ? nullptr : &at->second;
  }

  Status dequantize(Node node) {
    const Stored* from = stored(node.input(0));
    if (!from || !is_same(from->scale, node.input(1))) return {};
    const bool are_zero =
        is_zero_point_of_zeros(from->zero) && is_zero_point_of_zeros(node.input(2));
    if (!are_zero && !is_same(from->zero, node.input(2))) return {};
    if (from->floats.dtype() != node.output().dtype()) return {};
    TN_CHECK(give_out(edit_, node.output(), from->floats));
    return edit_.replace(node.output(), from->floats);
  }

  // The same of floats. Constants that it writes between them are stored like the rest.
  Status move(Node node) {
    std::vector<Value> inputs = node.inputs();
    const Stored* first = nullptr;
    for (Value& v : inputs) {
      const Stored* one = stored(v);
      if (!one) continue;
      if (first && !(is_same(first->scale, one->scale) && is_same(first->zero, one->zero)))
        return {};
      if (one->scale.type().elements() != 1) return {};  // an axis that it may move
      first = first ? first : one;
      v = one->floats;
    }
    if (!first) return {};
    for (Value& v : inputs)
      if (is_narrow(v) && v.dtype() == node.output().dtype()) {
        if (!v.is_constant()) return {};
        std::vector<Value> of{v, first->scale};
        if (first->zero) of.push_back(first->zero);
        TN_TRY(floats, edit_.op("DequantizeLinear", of));
        v = floats;
      }
    const Stored as = *first;
    TN_TRY(made, added_again(edit_, node, inputs, cat(node.name(), "_float")));
    for (uint64_t i = 0; i < node.n_outputs(); ++i)
      if (is_narrow(node.output(i)))
        stored_[node.output(i).id] = {made.output(i), as.scale, as.zero, as.axis, as.block};
    return {};
  }

  tn_ctx* ctx_;
  EditView edit_;
  std::unordered_map<tn_value_id, Stored> stored_;
  uint64_t roundings_ = 0;
};

// What constants of stored values alone make: floats.
class Folding {
 public:
  Folding(tn_ctx* ctx, tn_graph* graph) : ctx_(ctx), graph_(graph) {}

  Result<uint64_t> run(const Cancel& cancel) {
    find();
    uint64_t folded = 0;
    for (Node node : Graph{graph_}.nodes()) {
      if (!is_last(node)) continue;
      TN_CHECK(cancel.check());
      TN_CHECK(fold(node, cancel).in(node.name()));
      ++folded;
    }
    TN_TRY(edit, Edit::begin(graph_));
    TN_CHECK(erase_unused(edit));  // what they were made by
    TN_CHECK(edit.commit());
    return folded;
  }

 private:
  void find() {
    constexpr uint32_t kImpure = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;
    for (Node node : Graph{graph_}.nodes()) {
      const tn_op* row = node.row();
      const std::vector<Value> inputs = node.inputs();
      const bool is_computable = row && (row->traits & kImpure) == 0 && !inputs.empty();
      if (!is_computable || node.n_outputs() != 1) continue;
      const auto is_known = [&](Value v) { return !v || v.is_constant() || known_.contains(v.id); };
      if (!std::ranges::all_of(inputs, is_known)) continue;
      const auto is_stored = [&](Value v) {
        return v && (v.is_constant() ? is_narrow(v) : known_.at(v.id));
      };
      known_[node.output().id] =  // an int32 bias is not narrow
          role_of(node).is_quantized() || std::ranges::any_of(inputs, is_stored);
    }
  }

  // Floats that are made of stored values, and read by what is not known.
  bool is_last(Node node) const {
    auto at = known_.find(node.output().id);
    if (at == known_.end() || !at->second || !holds_floats(node.output())) return false;
    const Value made = node.output();
    bool is_read = made.is_output();
    for (uint64_t i = 0; i < made.consumer_count() && !is_read; ++i) {
      Value next = made.consumer(i).output();
      is_read = !known_.contains(next.id);
    }
    return is_read;
  }

  // The node and the known ones that it reads.
  void gather(Node node, std::vector<tn_node_id>& ids) const {
    for (Value v : node.inputs())
      if (v && known_.contains(v.id) && v.producer()) gather(v.producer(), ids);
    if (std::ranges::find(ids, node.id) == ids.end()) ids.push_back(node.id);
  }

  // One at a time, so that no more than one is there twice.
  Status fold(Node node, const Cancel& cancel) {
    std::vector<tn_node_id> ids;
    gather(node, ids);
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->extract(graph_, ids.data(), ids.size(), &raw));
    OwnedGraph part = OwnedGraph::take(raw);
    TN_TRY(plan, Plan::on_first(ctx_, part.view(), {}, {"reference"}));
    TN_CHECK(plan.run({}, cancel.raw()));
    const std::string name(node.output().name());
    const std::vector<Value> made = part.view().outputs();
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i].name() == name) return put(node, plan[i], name);
    return {TN_INTERNAL, cat("the value ", name, " is not among what its nodes give")};
  }

  Status put(Node node, const Tensor& tensor, const std::string& name) {
    TN_TRY(edit, Edit::begin(graph_));
    Node inside = edit.node(node.id);
    Value old = inside.output();
    TN_TRY(constant, edit.constant(tensor, ""));
    TN_CHECK(give_out(edit, old, constant));
    TN_CHECK(edit.replace(old, constant));
    TN_CHECK(edit.erase(inside));
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, constant.id, str(name))));
    return edit.commit();
  }

  tn_ctx* ctx_;
  tn_graph* graph_;
  std::unordered_map<tn_value_id, bool> known_;  // whether stored values are among what makes it
};

class DequantizePass {
 public:
  static Result<DequantizePass> create(tn_ctx* ctx, const Options&) {
    DequantizePass out;
    out.ctx_ = ctx;
    return out;
  }
  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(expanded, expand(raw));
    TN_TRY(edit, Edit::begin(raw));
    Dequantizing work(ctx_, edit);
    TN_CHECK(work.run());
    TN_CHECK(edit.commit());
    TN_TRY(weights, Folding(ctx_, raw).run(cancel));
    return sink.write(report(raw, expanded + work.roundings(), weights).dump());
  }

 private:
  static nlohmann::ordered_json report(tn_graph* raw, uint64_t roundings, uint64_t weights) {
    nlohmann::ordered_json left = nlohmann::ordered_json::array();
    for (Node node : Graph{raw}.nodes())
      if (role_of(node).is_quantized())
        left.push_back({{"node", node.name()}, {"op", node.type()}});
    return {{"roundings", roundings}, {"weights", weights}, {"left", left}};
  }
  tn_ctx* ctx_ = nullptr;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(dequantize,
           tenon::quantizer::DequantizePass,
           "quantizer.dequantize",
           "a quantized model in floating point again: to quantize it anew",
           "{}")

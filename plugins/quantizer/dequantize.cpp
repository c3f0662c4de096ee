// SPDX-License-Identifier: Apache-2.0
// "quantizer.dequantize": a quantized model in floating point again, whoever quantized it and in
// whatever form (QDQ, 8-bit operators, dynamic, weights alone): the way to quantize it anew.
// Weights are what their stored values stand for; roundings of activations go. Where one also cuts
// values off, as it does in files whose Relu the quantizer has left to the range, a Clip stays.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "tenon/narrow.hpp"
#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/plan.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "dynamic_form.hpp"
#include "float_nodes.hpp"
#include "fold_stored.hpp"
#include "graph_outputs.hpp"
#include "known_numbers.hpp"
#include "pointwise_values.hpp"
#include "repeated.hpp"
#include "role.hpp"
#include "stored_moves.hpp"

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

// An operator on stored values that its row writes with others: of ONNX's own, or of the domain
// whose rows may give such as float_products() knows.
bool is_expandable(Node node, bool is_of_onnx) {
  const tn_op* row = node.row();
  if (!row || !row->decompose) return false;
  if (is_of_onnx ? !node.domain().empty() || role_of(node).kind != Kind::kInteger
                 : node.domain() != "com.microsoft")
    return false;
  const std::vector<Value> in = node.inputs(), out = node.outputs();
  return std::ranges::any_of(in, is_narrow) &&
         std::ranges::none_of(out, [](Value v) { return v && v.dtype() == TN_I32; });
}

// Never negative: what a function of one number makes of numbers of all sizes, or what only moves
// such.
bool is_never_negative(tn_ctx* ctx, Value v) {
  Node node = v ? v.producer() : Node();
  for (int hops = 0; node && role_of(node).kind == Kind::kSameScale && hops < 8; ++hops) {
    const std::vector<Value> inputs = node.inputs();
    if (std::ranges::count_if(inputs, holds_floats) != 1) return false;
    node = std::ranges::find_if(inputs, holds_floats)->producer();
  }
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
  auto expand_all = [&, &all = edit](bool is_of_onnx) -> Result<bool> {
    bool has_any = false;
    for (Node node : all.graph().nodes()) {
      if (!is_expandable(node, is_of_onnx)) continue;
      TN_CHECK(Status(services.op->decompose(all.raw, node.id)).in(node.name()));
      has_any = true;
    }
    return has_any;
  };
  TN_CHECK(part_lookups(edit));
  uint64_t dynamic = 0;
  for (bool has_more = true; has_more;) {
    TN_TRY(products, float_products(edit));
    dynamic += products;
    TN_CHECK(erase_unused(edit));  // what these products were
    TN_TRY(expanded, expand_all(false));
    has_more = expanded;
  }
  TN_CHECK(expand_all(true).status());
  TN_CHECK(edit.commit());  // which puts nodes in order
  return dynamic;
}

// All zero points of a rounding; none: they are computed.
std::optional<std::vector<int64_t>> zero_points(Node quantize) {
  Value zero = quantize.input(2);
  if (!zero) return std::vector<int64_t>{0};
  if (!zero.is_constant()) return std::nullopt;
  const Tensor tensor = zero.constant();
  const DLTensor t = tensor.dl();
  std::vector<int64_t> out;
  for (int64_t i = 0, n = element_count(t); i < n; ++i) {
    if (TN_DTYPE_BITS(dtype_of(t)) <= 8)
      out.push_back(packed_integer_at(data_of<const void>(t), dtype_of(t), i));
    else if (dtype_of(t) == TN_U16)
      out.push_back(data_of<const uint16_t>(t)[i]);
    else if (dtype_of(t) == TN_I16)
      out.push_back(data_of<const int16_t>(t)[i]);
    else
      return std::nullopt;
  }
  return out;
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
    return keeps_scale(node) ? move(node) : Status();
  }

  Status quantize(Node node) {
    if (!holds_floats(node.input(0)) || node.input(0).is_constant()) return {};
    TN_TRY(floats, cut_off(node));
    if (!floats) return {};
    stored_[node.output().id] = {floats, node.input(1), node.input(2), node.attr_int("axis", 1),
                                 node.attr_int("block_size")};
    ++roundings_;
    return {};
  }

  // What is rounded, within the range that is left of it where the zero point is at its end.
  // Falsy: that range cannot be said, and the rounding stays.
  Result<Value> cut_off(Node node) {
    Value x = node.input(0), scale = node.input(1);
    const uint32_t dtype = node.output().dtype();
    if (TN_DTYPE_CODE(dtype) != kDLInt && TN_DTYPE_CODE(dtype) != kDLUInt) return x;
    const std::optional<std::vector<int64_t>> zeros = zero_points(node);
    if (!zeros) return Value{};
    const IntegerEnds ends = integer_ends(dtype);
    const auto is_at = [&](double end) {
      return std::ranges::any_of(*zeros,
                                 [end](int64_t zero) { return static_cast<double>(zero) == end; });
    };
    const bool is_at_low = is_at(ends.low), is_at_high = is_at(ends.high);
    if (!is_at_low && !is_at_high) return x;
    if (!is_at_high && is_never_negative(ctx_, x)) return x;
    if (zeros->size() != 1 || !scale.is_constant() || scale.type().elements() != 1) return Value{};
    TN_TRY(low, end_of(node, static_cast<int64_t>(ends.low) - zeros->front()));
    TN_TRY(high, end_of(node, static_cast<int64_t>(ends.high) - zeros->front()));
    TN_TRY(clip, edit_.add({.type = "Clip",
                            .inputs = {x, low, high},
                            .name = cat(node.name(), "_range"),
                            .scope = node.scope()}));
    return clip.output();
  }

  // So many steps, as a number of what is rounded.
  Result<Value> end_of(Node node, int64_t steps) {
    const std::vector<double> scale = numbers_of(node.input(1));
    if (scale.size() != 1) return unsupported("a scale of this type");
    const auto number = static_cast<float>(scale[0] * static_cast<double>(steps));
    TN_TRY(end, edit_.constant<float>(TN_F32, {}, std::vector{number}));
    const uint32_t dtype = node.input(0).dtype();
    if (dtype == TN_F32) return end;
    return edit_.op("Cast", {end}, {{"to", any_dtype(dtype)}});
  }

  const Stored* stored(Value v) const {
    auto at = v ? stored_.find(v.id) : stored_.end();
    return at == stored_.end() ? nullptr : &at->second;
  }

  Status dequantize(Node node) {
    const Stored* from = stored(node.input(0));
    if (!from) {
      TN_TRY(floats, moved_floats(edit_, node));
      if (!floats) return {};
      TN_CHECK(give_out(edit_, node.output(), floats));
      return edit_.replace(node.output(), floats);
    }
    if (!is_same(from->scale, node.input(1))) return {};
    const bool are_zero = are_zero_points_zero(from->zero) && are_zero_points_zero(node.input(2));
    if (!are_zero && !is_same(from->zero, node.input(2))) return {};
    const bool lie_alike =
        node.input(1).type().elements() == 1 ||
        (from->axis == node.attr_int("axis", 1) && from->block == node.attr_int("block_size"));
    if (!lie_alike) return {};
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
    const bool states_all = std::ranges::count_if(inputs, is_narrow) > 0;  // what Pad writes, say
    if (writes_zeros(node) && !states_all && !are_zero_points_zero(first->zero)) return {};
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

class DequantizePass {
 public:
  static Result<DequantizePass> create(tn_ctx* ctx, const Options&) {
    DequantizePass out;
    out.ctx_ = ctx;
    return out;
  }
  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(fold_moves(ctx_, raw, cancel));
    TN_TRY(expanded, expand(raw));
    TN_TRY(edit, Edit::begin(raw));
    Dequantizing work(ctx_, edit);
    TN_CHECK(work.run());
    TN_CHECK(edit.commit());
    TN_TRY(weights, fold_stored(ctx_, raw, cancel));
    return sink.write(report(raw, expanded + work.roundings(), weights).dump());
  }

 private:
  static nlohmann::ordered_json report(tn_graph* raw, uint64_t roundings, uint64_t weights) {
    nlohmann::ordered_json left = nlohmann::ordered_json::array();
    name_left({raw}, left);
    return {{"roundings", roundings}, {"weights", weights}, {"left", left}};
  }
  // Bodies of control flow are looked at, not rewritten.
  static void name_left(Graph graph, nlohmann::ordered_json& left) {
    for (Node node : graph.nodes()) {
      if (role_of(node).is_quantized())
        left.push_back({{"node", node.name()}, {"op", node.type()}});
      for (const Attr& attr : attributes_of(node))
        if (attr.value.tag == TN_ANY_GRAPH)
          name_left({static_cast<const tn_graph*>(attr.value.v.p)}, left);
    }
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

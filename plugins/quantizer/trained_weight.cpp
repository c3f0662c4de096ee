// SPDX-License-Identifier: Apache-2.0
#include "trained_weight.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <unordered_set>

#include "tenon/sdk/plan.hpp"

#include "signs.hpp"

namespace tenon::quantizer {
namespace {

constexpr std::string_view kRounded = "_rounded";  // ends the names of nodes that round weights
constexpr std::string_view kStep = "_step";        // ends the names of learned scales

// The nodes behind this one and itself, in topological order; empty when an input of the graph is
// among what they need.
std::vector<Node> constant_nodes(Node last) {
  std::vector<Node> out = nodes_behind({last.output()});
  for (Node node : out)
    for (Value v : node.inputs())
      if (v && !v.is_constant() && !v.producer()) return {};
  return out;
}

// The scale: the largest number of each channel over the largest quantized value, never 0.
Value scale_of(Builder& b, Value weight, const WeightPlan& plan) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < static_cast<int64_t>(weight.type().rank()); ++d)
    if (!plan.per_channel || d != plan.axis) axes.push_back(d);
  Node held = b.node({.type = "StopGradient", .inputs = {weight}, .domain = "tenon"});
  if (!held) return {};
  Value most = b.op("ReduceMax", {b.op("Abs", {held.output()}), b.ints(axes)}, {{"keepdims", 0}});
  Value share = b.div(most, b.number(plan.largest, TN_F32));
  Value least = b.number(std::numeric_limits<float>::min(), TN_F32);
  Value is_set = b.op("Greater", {most, b.number(0, TN_F32)});
  return b.op("Where", {is_set, b.op("Max", {share, least}), b.number(1, TN_F32)});
}

// Whose output channels have numbers other than 0.
struct Channels {
  Channels(const Tensor& tensor, const Type& type, int64_t axis)
      : numbers(tensor.data<float>(), static_cast<size_t>(type.elements())),
        at(type.dims, axis),
        has_others(static_cast<size_t>(at.size), 0) {
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] != 0) has_others[of(i)] = 1;
  }
  size_t of(size_t i) const { return at.along(i); }

  std::span<const float> numbers;
  AxisSplit at;
  std::vector<uint8_t> has_others;
};

Result<Tensor> made_or_constant(const std::map<std::string, Tensor>& made, Value v) {
  if (v.is_constant()) return v.constant();
  auto at = made.find(std::string(v.name()));
  if (at == made.end()) return Status(TN_INTERNAL, cat(v.name(), " was not computed"));
  return at->second;
}

}  // namespace

Result<Value> rounded_weight(
    EditView edit, const std::string& name, Value numbers, Value scale, const WeightPlan& plan) {
  std::vector<int64_t> channels;
  if (plan.per_channel) channels = {numbers.type().dims[static_cast<size_t>(plan.axis)]};
  std::vector<int8_t> zeros(static_cast<size_t>(element_count(channels)), 0);
  TN_TRY(zero, edit.constant<int8_t>(TN_I8, channels, zeros, name + "_zero"));
  std::vector<Attr> attrs;
  if (plan.per_channel) attrs.emplace_back("axis", plan.axis);
  std::string there = name + std::string(kRounded), back = name + "_dequantized";
  TN_TRY(q, edit.add({.type = "QuantizeLinear",
                      .inputs = {numbers, scale, zero},
                      .attrs = attrs,
                      .name = there,
                      .output_names = {there}}));
  std::vector<Value> inputs{q.output(), scale};
  if (has_zero_points(numbers.type().rank())) inputs.push_back(zero);
  TN_TRY(dq, edit.add({.type = "DequantizeLinear",
                       .inputs = inputs,
                       .attrs = attrs,
                       .name = back,
                       .output_names = {back}}));
  return dq.output();
}

Result<Value> with_zeros_kept(
    EditView edit, Value weight, int64_t axis, ZerosKept which, ZeroCounts* counts) {
  const Tensor tensor = weight.constant();
  const Type type = weight.type();
  const Channels channels(tensor, type, axis);
  const std::span<const float> numbers = channels.numbers;
  std::vector<uint8_t> is_trained;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_held =
        numbers[i] == 0 && (which == ZerosKept::kAll || (which == ZerosKept::kAmongOthers &&
                                                         channels.has_others[channels.of(i)] != 0));
    is_trained.push_back(is_held ? 0 : 1);
    if (numbers[i] == 0) ++(is_held ? counts->held : counts->trained);
  }
  if (std::ranges::count(is_trained, 0) == 0) return weight;
  std::string name(weight.name());
  TN_TRY(mask, edit.constant<uint8_t>(TN_BOOL, type.dims, is_trained, name + "_mask"));
  Builder b(edit);
  Value kept = b.op("Where", {mask, weight, b.number(0, TN_F32)});
  TN_CHECK(b.status());
  return kept;
}

Result<Value> trained_weight(EditView edit,
                             const std::string& name,
                             Value weight,
                             const WeightPlan& plan) {
  Builder b(edit);
  Value scale = scale_of(b, weight, plan);
  TN_CHECK(b.status());
  return rounded_weight(edit, name, weight, scale, plan);
}

Value learned_step(Builder& b,
                   const std::string& name,
                   const std::vector<float>& first,
                   double numbers) {
  Value step = b.take(b.edit().constant<float>(TN_F32, {static_cast<int64_t>(first.size())}, first,
                                               name + std::string(kStep)));
  const double share = 1 / std::sqrt(numbers);
  Node held = b.node({.type = "StopGradient",
                      .inputs = {b.mul(step, b.number(1 - share, TN_F32))},
                      .domain = "tenon"});
  if (!held) return {};
  Value now = b.add(b.mul(step, b.number(share, TN_F32)), held.output());
  return b.op("Max", {now, b.number(std::numeric_limits<float>::min(), TN_F32)});
}

Result<uint64_t> fold_steps(EditView edit) {
  uint64_t count = 0;
  for (Node node : edit.graph().nodes()) {
    if (!node.is("QuantizeLinear") || node.input(0).is_constant()) continue;
    Value scale = node.input(1);
    if (!scale.producer()) continue;  // constant already, or folded with another of its group
    for (Node maker : constant_nodes(scale.producer())) {
      for (Value v : maker.inputs()) {
        if (!v || !v.is_constant() || !v.name().ends_with(kStep)) continue;
        const Tensor step = v.constant();
        const float now = std::max(*step.data<float>(), std::numeric_limits<float>::min());
        std::string name(v.name());
        name.resize(name.size() - kStep.size());
        TN_TRY(made, edit.constant<float>(TN_F32, {}, {now}, name + "_scale"));
        TN_CHECK(edit.replace(scale, made));
        TN_CHECK(erase_unused(edit, scale.producer()));
        ++count;
        break;
      }
      if (node.input(1).is_constant()) break;
    }
  }
  return count;
}

std::vector<float> first_steps(Value weight, const WeightPlan& plan, std::vector<float> scale) {
  const Tensor tensor = weight.constant();
  const Channels channels(tensor, weight.type(), plan.axis);
  const auto n_others = std::ranges::count(channels.has_others, 1);
  const size_t n_channels = channels.has_others.size();
  if (n_others == std::ssize(channels.has_others)) return scale;
  if (scale.size() == 1 && n_others > 0) return scale;
  double first = 0;
  for (size_t c = 0; c < n_channels && n_others > 0; ++c)
    if (channels.has_others[c]) first += scale[c] / static_cast<double>(n_others);
  const auto each = static_cast<double>(channels.numbers.size() / n_channels);
  const double size = std::sqrt(2 * std::numbers::inv_pi / each);  // the mean of normal numbers'
  if (n_others == 0) first = 2 * size / std::sqrt(plan.largest);
  for (size_t c = 0; c < scale.size(); ++c)
    if (!channels.has_others[c]) scale[c] = static_cast<float>(first);
  return scale;
}

// Quantized values stay within the largest one because the weight is cut there: what is cut gives
// its gradient to the scale, as the step size's rule has it, and the rows of the two nodes do the
// rest.
Result<Value> learned_weight(EditView edit,
                             const std::string& name,
                             Value weight,
                             const WeightPlan& plan,
                             const std::vector<float>& scale) {
  Builder b(edit);
  auto count = static_cast<int64_t>(plan.per_channel ? scale.size() : 1);
  std::vector<float> first(scale.begin(), scale.begin() + count);
  const double each = static_cast<double>(weight.type().elements()) / static_cast<double>(count);
  Value now = learned_step(b, name, first, each * plan.largest);
  std::vector<int64_t> along(weight.type().rank(), 1);
  if (plan.per_channel) along[static_cast<size_t>(plan.axis)] = count;
  Value end = b.op("Reshape", {b.mul(now, b.number(plan.largest, TN_F32)), b.ints(along)});
  Value cut = b.op("Max", {b.op("Min", {weight, end}), b.neg(end)});
  if (!plan.per_channel) now = b.op("Reshape", {now, b.ints({})});
  TN_CHECK(b.status());
  return rounded_weight(edit, name, cut, now, plan);
}

std::vector<TrainedWeight> find_trained_weights(Graph graph) {
  std::vector<TrainedWeight> out;
  for (Node node : graph.nodes()) {
    if (!node.is("QuantizeLinear") || node.output().consumer_count() != 1) continue;
    Value weight = node.input(0);
    Node reader = node.output().consumer(0);
    if (!reader.is("DequantizeLinear") || node.output().is_output()) continue;
    std::vector<Node> nodes = constant_nodes(node);
    if (nodes.empty()) continue;
    std::string name(weight.is_constant() ? weight.name() : node.name());
    if (!weight.is_constant() && name.ends_with(kRounded))
      name.resize(name.size() - kRounded.size());
    out.push_back({node, reader, std::move(name), std::move(nodes), {}, {}, {}});
  }
  return out;
}

Status round_weights(tn_ctx* ctx,
                     Graph graph,
                     std::vector<TrainedWeight>* weights,
                     const Cancel& cancel) {
  std::vector<tn_node_id> nodes;
  std::unordered_set<tn_node_id> known;
  for (const TrainedWeight& one : *weights)
    for (Node node : one.nodes)
      if (known.insert(node.id).second) nodes.push_back(node.id);
  tn_graph* raw = nullptr;
  TN_CHECK(Status(services.graph->extract(graph.raw, nodes.data(), nodes.size(), &raw)));
  OwnedGraph part = OwnedGraph::take(raw);
  TN_TRY(plan, Plan::on_first(ctx, part.view(), {}, {"reference"}));
  TN_CHECK(plan.run({}, cancel.raw()));
  std::vector<Value> results = part.view().outputs();
  std::map<std::string, Tensor> made;
  for (size_t i = 0; i < results.size(); ++i)
    made[std::string(results[i].name())] = plan[i];
  for (TrainedWeight& one : *weights) {
    TN_TRY(numbers, made_or_constant(made, one.quantize.output()));
    TN_TRY(scale, made_or_constant(made, one.dequantize.input(1)));
    one.numbers = numbers;
    one.scale = scale;
    if (!one.dequantize.input(2)) continue;
    TN_TRY(zero, made_or_constant(made, one.dequantize.input(2)));
    one.zero = zero;
  }
  return {};
}

Status fold_weight(EditView edit, const TrainedWeight& weight) {
  Node dq = edit.node(weight.dequantize.id);
  TN_TRY(numbers, edit.constant(weight.numbers, weight.name + "_quantized"));
  TN_TRY(scale, edit.constant(weight.scale, weight.name + "_scale"));
  TN_CHECK(edit.set_input(dq, 0, numbers));
  TN_CHECK(edit.set_input(dq, 1, scale));
  if (weight.zero) {
    TN_TRY(zero, edit.constant(weight.zero, weight.name + "_zero_point"));
    TN_CHECK(edit.set_input(dq, 2, zero));
  }
  for (size_t i = weight.nodes.size(); i-- > 0;) {
    Node node = edit.node(weight.nodes[i].id);
    if (!node.is_used()) TN_CHECK(edit.erase(node));
  }
  return {};
}

}  // namespace tenon::quantizer

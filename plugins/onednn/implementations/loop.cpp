// SPDX-License-Identifier: Apache-2.0
// Loop: a step that repeats the plan of its body for as long as its condition holds, at most as
// often as its trip count says. States keep their shapes; what an iteration adds to a list is
// written where it lies, so how often the loop runs must be known then.

#include <algorithm>
#include <optional>

#include "handlers.hpp"
#include "repeated.hpp"

namespace tenon::onednn {
namespace {

enum Input { kTripCount, kCondition, kFirstState };
enum BodyInput { kIteration, kConditionBefore };

RepeatedForm form_of(const Node& node) {
  RepeatedForm form;
  form.n_control = kFirstState;
  form.n_control_outputs = 1;
  form.n_captured = static_cast<size_t>(node.integer("captures", 0));
  form.n_states =
      node.inputs.size() - std::min(node.inputs.size(), form.n_control + form.n_captured);
  return form;
}

bool is_one(const Value& value, ElementType type) {
  return value.is_known && value.type == type && value.count() == 1;
}

// The trip count, where it is constant.
std::optional<int64_t> constant_count(const Graph& graph, const Node& node) {
  if (node.inputs[kTripCount] == kNone) return std::nullopt;
  const Value& count = graph.value(node.inputs[kTripCount]);
  if (count.data == nullptr) return std::nullopt;
  return *static_cast<const int64_t*>(count.data);
}

bool is_constant_true(const Value& value) {
  return value.data != nullptr && *static_cast<const uint8_t*>(value.data) != 0;
}

// Whether the condition stays as it was in front of the loop.
bool keeps_condition(const Graph& body) {
  return body.outputs[0] == body.inputs[kConditionBefore] ||
         is_constant_true(body.value(body.outputs[0]));
}

// Whether nothing but the trip count ends the loop.
bool never_stops(const Graph& graph, const Node& node, const Graph& body) {
  const int first = node.inputs[kCondition];
  return (first == kNone || is_constant_true(graph.value(first))) && keeps_condition(body);
}

void remove_condition(Graph& body) {
  --body.values[static_cast<size_t>(body.outputs[0])].n_outputs;
  body.outputs.erase(body.outputs.begin());
}

std::string refuse_control(const Graph& graph, const Node& node, const Graph& body) {
  const int count = node.inputs[kTripCount];
  const int first = node.inputs[kCondition];
  const bool fits = (count == kNone || is_one(graph.value(count), ElementType::kI64)) &&
                    (first == kNone || is_one(graph.value(first), ElementType::kBool)) &&
                    is_one(body.value(body.inputs[kIteration]), ElementType::kI64) &&
                    is_one(body.value(body.inputs[kConditionBefore]), ElementType::kBool) &&
                    is_one(body.value(body.outputs[0]), ElementType::kBool);
  return fits ? "" : "a trip count or condition that is no int64 or bool";
}

}  // namespace

std::string refuse_loop(const Graph& graph, const Node& node) {
  const RepeatedForm form = form_of(node);
  if (node.inputs.size() < form.n_control) return "no trip count and condition";
  if (std::string why = refuse_repeated(graph, node, form); !why.empty()) return why;
  const Graph& body = *graph.body_of(node);
  if (std::string why = refuse_control(graph, node, body); !why.empty()) return why;
  if (node.outputs.size() == form.n_states) return {};
  const std::optional<int64_t> count = constant_count(graph, node);
  if (!count || *count < 1 || !never_stops(graph, node, body))
    return "it makes lists, and how often it runs depends on data";
  return {};
}

void lower_loop(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(index);
  const int64_t length = std::max<int64_t>(1, constant_count(graph, node).value_or(1));
  Graph body = *graph.body_of(node);
  const bool decides = !keeps_condition(body);
  if (!decides) remove_condition(body);
  auto [step, loop] = lower_repeated(lowering, node, body, form_of(node), length);
  loop->has_condition = true;
  loop->decides = decides;
  for (int control : {node.inputs[kTripCount], node.inputs[kCondition]}) {
    const bool is_given = control != kNone;
    step.places.push_back(
        is_given ? place_of(lowering.read_row_major(control, graph.value(control).type))
                 : Place{kNone, 0});
  }
  step.places.push_back({lowering.scratch(kLoopControlBytes), 0});
  step.loop = std::move(loop);
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn

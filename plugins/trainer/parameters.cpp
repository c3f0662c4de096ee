// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/number.hpp"
#include "tenon/sdk/pattern.hpp"

namespace tenon::trainer {
namespace {

constexpr std::string_view kTrainNote = "train";

// Values from which an output can be reached: also through the integers of quantized weights.
std::unordered_set<tn_value_id> reaching(Graph graph) {
  std::unordered_set<tn_value_id> seen;
  std::vector<Value> open = graph.outputs();
  while (!open.empty()) {
    Value at = open.back();
    open.pop_back();
    if (!at || !seen.insert(at.id).second) continue;
    if (Node node = at.producer())
      for (Value input : node.inputs())
        open.push_back(input);
  }
  return seen;
}

// How a value is read where it is no weight: running statistics, scales of quantization, factors of
// sizes, the two values of a one-hot vector, thresholds.
bool is_setting(Node node, uint64_t input) {
  if (node.is("BatchNormalization")) return input >= 3;
  if (node.is("Resize")) return input > 0;
  if (node.is("OneHot") || node.is("NonMaxSuppression")) return input >= 2;
  bool rounds = node.is("QuantizeLinear") || node.is("DequantizeLinear");
  return rounds && input > 0;
}

// Masks of attention hold infinities, weights do not.
bool is_finite(Value constant) {
  Tensor tensor = constant.constant();
  return has_finite_numbers(tensor.dl());
}

bool is_weight(Value constant) {
  Type type = constant.type();
  if ((type.dtype != TN_F32 && type.dtype != TN_F64) || type.rank() == 0 || type.elements() == 0)
    return false;
  if (!is_finite(constant)) return false;
  for (uint64_t i = 0; i < constant.consumer_count(); ++i) {
    uint64_t input = 0;
    Node node = constant.consumer(i, &input);
    if (!is_setting(node, input)) return true;
  }
  return false;
}

bool is_trained(Value constant) {
  tn_any note = constant.note(kTrainNote);
  return note.tag == TN_ANY_NONE ? is_weight(constant) : int_of(note, 0) != 0;
}

// By its own name, or by a node that reads it.
bool is_meant(const std::vector<std::string>& patterns, Value constant) {
  if (!matched_by(patterns, constant.name()).empty()) return true;
  for (uint64_t i = 0; i < constant.consumer_count(); ++i)
    if (!matched_by(patterns, constant.consumer(i)).empty()) return true;
  return false;
}

std::string constants_of(Graph graph) {
  std::vector<std::string_view> names;
  for (Value constant : graph.constants())
    if (is_weight(constant)) names.push_back(constant.name());
  return cat(" (it has ", few_of(names), ")");
}

Status refuse_idle_patterns(Graph graph,
                            std::string_view option,
                            const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    auto fits = [&](Value constant) { return is_meant({pattern}, constant); };
    if (std::ranges::none_of(graph.constants(), fits))
      return invalid(cat("option ", option, ": no constant of the model fits '", pattern, "'",
                         constants_of(graph)));
  }
  return {};
}

}  // namespace

std::string few_of(const std::vector<std::string_view>& names) {
  constexpr size_t kMost = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += cat(i ? ", " : "", names[i]);
  if (names.size() > kMost) text += cat(" and ", names.size() - kMost, " more");
  return names.empty() ? "none" : text;
}

Result<std::vector<std::string>> find_parameters(Graph graph, const ParameterChoice& choice) {
  TN_CHECK(refuse_idle_patterns(graph, "frozen", choice.frozen));
  std::unordered_set<tn_value_id> live = reaching(graph);
  std::vector<std::string> found;
  for (Value constant : graph.constants()) {
    if (!live.contains(constant.id)) continue;
    if (!is_trained(constant) || is_meant(choice.frozen, constant)) continue;
    if (choice.only.empty() || is_meant(choice.only, constant)) found.emplace_back(constant.name());
  }
  if (!found.empty()) TN_CHECK(refuse_idle_patterns(graph, "parameters", choice.only));
  if (!found.empty() || (choice.may_be_none && choice.only.empty())) return found;
  if (!choice.only.empty())
    return invalid(cat("option parameters: no float32 constant of the model fits '",
                       choice.only.front(), "'", constants_of(graph)));
  if (!choice.frozen.empty())
    return invalid(cat("option frozen: expected some parameter that is left to train, got none: ",
                       choice.frozen.front(),
                       choice.frozen.size() > 1 ? " and others fit" : " fits", " all"));
  return invalid(
      "expected a model with weights of float32 or float64 to train, got none; precision.widen "
      "makes them of 16-bit ones");
}

std::vector<std::string_view> weights_of_bodies(Graph graph) {
  std::vector<std::string_view> names;
  auto add = [&](std::string_view name) {
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (Node node : graph.nodes())
    for (const Attr& attr : attributes_of(node)) {
      if (attr.value.tag != TN_ANY_GRAPH) continue;
      const Graph body{static_cast<const tn_graph*>(attr.value.v.p)};
      for (Value constant : body.constants())
        if (is_trained(constant)) add(constant.name());
      std::ranges::for_each(weights_of_bodies(body), add);
    }
  return names;
}

bool has_finite_numbers(const DLTensor& tensor) {
  bool all = true;
  auto look = [&](const auto* data) {
    all = std::all_of(data, data + element_count(tensor), [](auto x) { return std::isfinite(x); });
  };
  if (dtype_of(tensor) == TN_F32) look(data_of<const float>(tensor));
  if (dtype_of(tensor) == TN_F64) look(data_of<const double>(tensor));
  return all;
}

namespace {

// What is trained in float64 goes back into a model of float32.
Result<Tensor> in_type(tn_ctx* ctx, const Tensor& tensor, uint32_t dtype) {
  DLTensor from = tensor.dl();
  if (dtype_of(from) == dtype || dtype != TN_F32 || dtype_of(from) != TN_F64) return tensor;
  TN_TRY(numbers, numbers_as<float>(from));
  return Tensor::of<float>(ctx, dtype, shape_of(from), numbers);
}

}  // namespace

Status put_back(tn_graph* graph, const Weights& weights) {
  TN_TRY(edit, Edit::begin(graph));
  for (const auto& [name, tensor] : weights) {
    Value old = edit.graph().find(name);
    if (!old || !old.is_constant()) return {TN_INTERNAL, cat("no constant ", name, " to put back")};
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, old.id, str(name + "/before"))));
    TN_TRY(typed, in_type(edit.ctx(), tensor, old.dtype()));
    TN_TRY(fresh, edit.constant(typed, name));
    if (tn_any train = old.note(kTrainNote); train.tag != TN_ANY_NONE)
      TN_CHECK(edit.set_note(fresh.id, kTrainNote, train));
    TN_CHECK(edit.replace(old, fresh));
  }
  return edit.commit();
}

}  // namespace tenon::trainer

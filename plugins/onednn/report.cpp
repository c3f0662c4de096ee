// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <map>
#include <set>

#include "tenon/sdk/backend/report.hpp"

#include "choosing/choice_store.hpp"

namespace tenon::onednn {
namespace {

using backend::json_text;

// What the steps of a plan read and write.
int64_t bytes_moved(const Plan& plan) {
  double moved = 0;
  for (const Step& step : plan.steps)
    moved += step.bytes;
  return static_cast<int64_t>(moved);
}

struct Layer {
  const Step* step;
  uint64_t ns = 0;
  double flops = 0;
  double bytes = 0;
};

// A step that runs in parts is one layer. step_ns may be empty.
std::vector<Layer> layers_of(const Plan& plan, const std::vector<uint64_t>& step_ns) {
  std::vector<Layer> layers;
  std::map<std::pair<std::string_view, std::string_view>, size_t> known;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    auto [at, is_new] = known.try_emplace({step.name, step.kernel}, layers.size());
    if (is_new) layers.push_back({&step});
    Layer& layer = layers[at->second];
    if (!step_ns.empty()) layer.ns += step_ns[i];
    layer.flops += step.flops;
    layer.bytes += step.bytes;
  }
  return layers;
}

// A step without a choice has its kernel as its only implementation.
std::string what_runs(const Step& step) {
  std::string text =
      cat("\"name\": ", json_text(step.name), ", \"op\": ", json_text(step.op),
          ", \"kernel\": ", json_text(step.kernel), ", \"implementation\": ",
          json_text(step.choice ? step.choice->implementation : step.kernel), ", \"refused\": ");
  const Choice none, &choice = step.choice ? *step.choice : none;
  text += backend::listed(choice.refusals, [](const Refusal& one) {
    return cat("{\"implementation\": ", json_text(one.implementation),
               ", \"why\": ", json_text(one.why), "}");
  });
  if (choice.measured.empty()) return text;
  return cat(text, ", \"measured\": ", backend::listed(choice.measured, [](const Timed& one) {
               return cat("{\"implementation\": ", json_text(one.implementation),
                          ", \"ns\": ", one.ns, "}");
             }));
}

// Of this plan and of the loops in it.
void add_choices(const Plan& plan, std::set<std::string>* lines) {
  for (const Step& step : plan.steps) {
    if (step.loop) add_choices(step.loop->body->plan(), lines);
    if (!step.choice || step.choice->key.empty()) continue;
    lines->insert(
        ChoiceStore::line_of(step.choice->key, {step.choice->decided, step.choice->measured}));
  }
}

}  // namespace

int64_t least_bytes_moved(const Graph& graph) {
  int64_t least = 0;
  for (const Value& value : graph.values) {
    bool is_constant = value.data != nullptr && !value.users.empty();
    if (is_constant) least += value.bytes();
  }
  for (const std::vector<int>* ends : {&graph.inputs, &graph.outputs}) {
    for (int value : *ends)
      least += graph.values[static_cast<size_t>(value)].bytes();
  }
  for (const auto& [before, after] : graph.states)
    least += graph.values[static_cast<size_t>(before)].bytes() * (after == before ? 1 : 2);
  return least;
}

std::string described(const Executable& executable,
                      int64_t least_moved,
                      const std::string& precision) {
  const Plan& plan = executable.plan();
  const std::string layers = backend::listed(
      layers_of(plan, {}), [](const Layer& layer) { return "{" + what_runs(*layer.step) + "}"; });
  std::set<std::string> choices;
  add_choices(plan, &choices);
  return cat("{\"precision\": ", json_text(precision), ", \"steps\": ", plan.steps.size(),
             ", \"reorders\": ", plan.n_reorders, ", \"arena_bytes\": ", executable.arena().bytes,
             ", \"arena_lower_bound_bytes\": ", executable.arena().lower_bound,
             ", \"bytes_moved\": ", bytes_moved(plan), ", \"bytes_moved_ideal\": ", least_moved,
             ", \"packed_bytes\": ", plan.packed_bytes, ", \"threads\": ", executable.threads(),
             ", \"kernels\": ", backend::kernel_counts(plan.steps),
             ", \"choices\": ", backend::listed(choices, json_text), ", \"layers\": ", layers, "}");
}

std::string profiled(const Plan& plan, const std::vector<uint64_t>& step_ns) {
  std::string text = "[";
  for (const Layer& layer : layers_of(plan, step_ns))
    text += cat(text.size() == 1 ? "" : ", ", "{", what_runs(*layer.step), ", \"ns\": ", layer.ns,
                ", \"flops\": ", layer.flops, ", \"bytes\": ", layer.bytes, "}");
  return text + "]";
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "stepper.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "accumulate.hpp"

namespace tenon::trainer {

Result<std::unique_ptr<Stepper::Compiled>> Stepper::compile(StepSizes sizes,
                                                            const Cancel& cancel) const {
  auto out = std::make_unique<Compiled>();
  TN_TRY(graph, make_step(*recipe_, sizes, cancel));
  out->graph = std::move(graph);
  Graph view = out->graph.graph.view();
  for (Value state : view.list(TN_LIST_STATES))
    out->states.emplace(std::string(state.name()), state.type());
  Result<Plan> plan = kept_.empty() ? Plan::compile(recipe_->ctx, view, {}, options_)
                                    : now().plan.beside(recipe_->ctx, view);
  if (!plan.ok()) return std::move(plan).status();
  out->plan = std::move(*plan);
  return out;
}

Status Stepper::use(StepSizes sizes, const Cancel& cancel) {
  auto found = std::ranges::find(kept_, sizes, &Kept::sizes);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return {};
  }
  Result<std::unique_ptr<Compiled>> fresh = compile(sizes, cancel);
  if (!fresh.ok()) return std::move(fresh).status();
  ++n_compiled_;
  bool is_first = kept_.empty();
  kept_.push_front({sizes, std::move(*fresh)});
  if (kept_.size() > most_kept_) kept_.pop_back();
  return is_first ? start() : Status();
}

namespace {

uint64_t bytes_in(const Type& type) {
  return bytes_of(type.dtype, type.elements());
}

// Batches that wait, the one in work, the one that runs, and the feed's own.
constexpr uint64_t kBatchesInFlight = 5;

// A plan is made for the shapes of inputs that it is shown.
Status prepare(tn_ctx* ctx, Graph graph, const Plan& plan) {
  std::vector<Value> states = graph.list(TN_LIST_STATES);
  std::vector<Tensor> zeros;
  std::vector<DLTensor> views;
  std::vector<const DLTensor*> inputs;
  for (Value input : graph.inputs()) {
    if (std::find(states.begin(), states.end(), input) != states.end()) continue;
    Type type = input.type();
    TN_TRY(zero, Tensor::zeros(ctx, type.dtype, type.dims));
    zeros.push_back(zero);
  }
  for (const Tensor& zero : zeros)
    views.push_back(zero.dl());
  for (const DLTensor& view : views)
    inputs.push_back(&view);
  return Status(services.eval->prepare(plan.raw(), inputs.data(), inputs.size()));
}

}  // namespace

Result<uint64_t> Stepper::planned_bytes(StepSizes sizes, const Cancel& cancel) const {
  TN_TRY(made, compile(sizes, cancel));
  TN_CHECK(prepare(recipe_->ctx, made->graph.graph.view(), made->plan));
  nlohmann::json plan = nlohmann::json::parse(made->plan.describe(), nullptr, false);
  uint64_t arena = 0, out = plan.value("arena_bytes", uint64_t{0});
  for (const nlohmann::json& part : plan.value("partitions", nlohmann::json::array())) {
    if (part.value("backend", "") == "host")
      return unsupported(
          "option memory: expected a model without If, Loop and Scan, whose bodies have plans that "
          "are not counted; give batch");
    uint64_t own = part.value("arena_bytes", part.value("workspace_bytes", uint64_t{0}));
    arena = std::max(arena, own);  // parts run one after another
    out += part.value("packed_bytes", uint64_t{0});
  }
  out += arena;
  for (const auto& [name, type] : made->states)
    out += bytes_in(type);
  for (const std::vector<Field>* fields : {&recipe_->inputs, &recipe_->targets})
    for (const Field& field : *fields)
      out += kBatchesInFlight * bytes_in(field.type_for(sizes));
  return out;
}

Status Stepper::start() {
  for (const auto& [name, tensor] : now().graph.initial) {
    if (!now().states.contains(name)) continue;  // the loss does not depend on it
    DLTensor value = tensor.dl();
    TN_CHECK(services.eval->state_set(now().plan.raw(), str(name), &value));
  }
  return {};
}

Result<Outcome> Stepper::run(std::span<const DLTensor> batch, const StepInputs& inputs) {
  std::vector<DLTensor> views(batch.begin(), batch.end());
  std::vector<float> numbers;
  for (const std::string& name : now().graph.numbers) {
    auto setting = inputs.settings.find(name.substr(name.find('/') + 1));
    double number = name == kAccumulatedUpdate         ? inputs.updates
                    : setting != inputs.settings.end() ? setting->second
                                                       : inputs.rate;
    numbers.push_back(static_cast<float>(number));
  }
  std::vector<DenseView> scalars;
  for (float& number : numbers)
    scalars.emplace_back(TN_F32, std::span<const int64_t>(), &number);
  for (const DenseView& scalar : scalars)
    views.push_back(*scalar);
  const StepGraph& of = now().graph;
  const Plan& results = now().plan;
  // A step runs to its end, so that the states are never between two steps.
  TN_CHECK(now().plan.run(views));
  Outcome out;
  out.loss = *results[*of.loss].data<float>();
  if (of.found_inf) out.skipped = *results[*of.found_inf].data<bool>();
  if (of.histogram)
    std::copy_n(results[*of.histogram].data<double>(), 5, out.gradients.emplace().begin());
  if (of.first_nan) {
    auto first = static_cast<size_t>(*results[*of.first_nan].data<int64_t>());
    if (first < of.watched.size()) {
      const std::string& who = of.watched[first];
      bool is_node = !who.starts_with("input ") && !who.starts_with("constant ");
      out.first_nan = cat(is_node ? "the result of " : "", who);
    }
  }
  return out;
}

Result<Weights> Stepper::states() const {
  std::vector<std::string> names;
  for (const auto& [name, type] : now().states)
    names.push_back(name);
  return states(names);
}

Result<Weights> Stepper::states(const std::vector<std::string>& names) const {
  Weights out;
  for (const std::string& name : names) {
    auto at = now().states.find(name);
    if (at == now().states.end()) return Status(TN_INTERNAL, cat("no state ", name));
    TN_TRY(tensor, Tensor::zeros(recipe_->ctx, at->second.dtype, at->second.dims));
    DLTensor view = tensor.dl();
    TN_CHECK(services.eval->state_get(now().plan.raw(), str(name), &view));
    out[name] = tensor;
  }
  return out;
}

Status Stepper::set_states(const Weights& states) {
  for (const auto& [name, tensor] : states) {
    DLTensor view = tensor.dl();
    TN_CHECK(services.eval->state_set(now().plan.raw(), str(name), &view));
  }
  return {};
}

}  // namespace tenon::trainer

// SPDX-License-Identifier: Apache-2.0
#include "stepper.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include <nlohmann/json.hpp>

#include "accumulate.hpp"

namespace tenon::trainer {

namespace {

uint64_t bytes_in(const Type& type) {
  return bytes_of(type.dtype, type.elements());
}

// Batches that wait, the one in work, the one that runs, and the feed's own.
constexpr uint64_t kBatchesInFlight = 5;

// Compiles a plan for the shapes of these inputs.
Status prepare(const Plan& plan, std::span<const DLTensor> inputs) {
  std::vector<const DLTensor*> shown;
  for (const DLTensor& input : inputs)
    shown.push_back(&input);
  return Status(services.eval->prepare(plan.raw(), shown.data(), shown.size()));
}

// For those that the graph states.
Status prepare(tn_ctx* ctx, Graph graph, const Plan& plan) {
  std::vector<Value> states = graph.list(TN_LIST_STATES);
  std::vector<Tensor> zeros;
  std::vector<DLTensor> views;
  for (Value input : graph.inputs()) {
    if (std::find(states.begin(), states.end(), input) != states.end()) continue;
    Type type = input.type();
    TN_TRY(zero, Tensor::zeros(ctx, type.dtype, type.dims));
    zeros.push_back(zero);
  }
  for (const Tensor& zero : zeros)
    views.push_back(zero.dl());
  return prepare(plan, views);
}

}  // namespace

Result<uint64_t> Stepper::planned_bytes(StepSizes sizes, const Cancel& cancel) const {
  TN_TRY(made, make(sizes, cancel));
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
  for (Value state : made->graph.graph.view().list(TN_LIST_STATES))
    out += bytes_in(state.type());
  for (const std::vector<Field>* fields : {&recipe_->inputs, &recipe_->targets})
    for (const Field& field : *fields)
      out += kBatchesInFlight * bytes_in(field.type_for(sizes));
  return out;
}

// The first plan makes the states, the others are compiled beside it.
Result<std::unique_ptr<Stepper::Compiled>> Stepper::make(StepSizes sizes,
                                                         const Cancel& cancel) const {
  auto out = std::make_unique<Compiled>();
  TN_TRY(graph, make_step(*recipe_, sizes, cancel));
  out->graph = std::move(graph);
  const Graph view = out->graph.graph.view();
  Result<Plan> plan = kept_.empty() ? Plan::compile(recipe_->ctx, view, {}, options_)
                                    : now().plan.beside(recipe_->ctx, view);
  if (!plan.ok()) return std::move(plan).status();
  out->plan = std::move(*plan);
  return out;
}

Status Stepper::add(StepSizes sizes, const Cancel& cancel) {
  Result<std::unique_ptr<Compiled>> made = make(sizes, cancel);
  if (!made.ok()) return std::move(made).status();
  kept_.push_front({sizes, std::move(*made)});
  return {};
}

Status Stepper::use(StepSizes sizes, const Cancel& cancel) {
  if (kept_.empty()) TN_CHECK(start({sizes.batch, sizes.length}, cancel));
  auto found = std::ranges::find(kept_, sizes, &Kept::sizes);
  if (found == kept_.end()) {
    TN_CHECK(add(sizes, cancel));
    drop_old_shapes();
  } else {
    kept_.splice(kept_.begin(), kept_, found);
  }
  return {};
}

// A shape goes with the steps for all of its sets of layers.
void Stepper::drop_old_shapes() {
  std::vector<StepSizes> shapes;  // the one used last first
  std::erase_if(kept_, [&](const Kept& one) {
    const StepSizes shape{one.sizes.batch, one.sizes.length};
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
    return std::ranges::find(shapes, shape) - shapes.begin() >=
           static_cast<std::ptrdiff_t>(most_shapes_);
  });
}

// The step that leaves no layer out has all states; it is compiled when it is drawn.
Status Stepper::start(StepSizes sizes, const Cancel& cancel) {
  TN_CHECK(add(sizes, cancel));
  for (Value state : now().graph.graph.view().list(TN_LIST_STATES))
    states_.emplace(std::string(state.name()), state.type());
  layers_ = now().graph.layers;
  for (const auto& [name, tensor] : now().graph.initial) {
    if (!states_.contains(name)) continue;  // the loss does not depend on it
    DLTensor value = tensor.dl();
    TN_CHECK(services.eval->state_set(now().plan.raw(), str(name), &value));
  }
  // What cannot do without some layers says so now, not when they are drawn.
  for (sizes.layer_set = 1; sizes.layer_set < layers_.sets.size(); ++sizes.layer_set) {
    const std::string what =
        cat("option drop_layers: the step without ", layers_.names_in(sizes.layer_set));
    TN_CHECK(add(sizes, cancel).in(what));
    TN_CHECK(check_shared_states().in(what));
  }
  return {};
}

// An optimizer's own states (its count of updates) are named in the order of the groups of
// parameters: a group that loses all of its parameters would leave its states to the next one.
// Those of a layer have its name, and are not there without it.
Status Stepper::check_shared_states() const {
  const Graph step = now().graph.graph.view();
  auto is_of = [](const std::string& state, const std::string& owner) {
    return state.starts_with(owner) && (state.size() == owner.size() || state[owner.size()] == '/');
  };
  auto is_of_one = [&](const std::string& state) {
    return std::ranges::any_of(recipe_->parameters, std::bind_front(is_of, state)) ||
           std::ranges::any_of(layers_.names, std::bind_front(is_of, state));
  };
  for (const auto& [name, type] : states_)
    if (!is_of_one(name) && !step.find(name))
      return invalid(
          cat("expected parameters in each group that has some, got a group without any: "
              "state ",
              name, " is not there"));
  return {};
}

void Stepper::follow(const std::set<std::string>& decisions) {
  if (decisions.empty()) return;
  decisions_ = decisions;
  nlohmann::json options = nlohmann::json::parse(options_);
  options[kDecisions] = decisions;
  options_ = options.dump();
}

void Stepper::note_decisions() {
  const nlohmann::json plan = nlohmann::json::parse(now().plan.describe(), nullptr, false);
  if (!plan.is_object()) return;
  for (const nlohmann::json& part : plan.value("partitions", nlohmann::json::array()))
    for (const nlohmann::json& line : part.value(kDecisions, nlohmann::json::array()))
      if (line.is_string()) decisions_.insert(line);
}

Status Stepper::compile_now(std::span<const DLTensor> inputs) {
  if (now().is_compiled) return {};
  auto began = std::chrono::steady_clock::now();
  TN_CHECK(prepare(now().plan, inputs));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  now().is_compiled = true;
  note_decisions();
  compile_seconds_ += took.count();
  ++compiled_;
  return {};
}

Result<Outcome> Stepper::run(std::span<const DLTensor> batch, const StepInputs& inputs) {
  std::vector<DLTensor> views(batch.begin(), batch.end());
  std::vector<float> numbers;
  std::vector<double> wide;
  for (const std::string& name : now().graph.numbers) {
    auto setting = inputs.settings.find(name.substr(name.find('/') + 1));
    double number = name == kAccumulatedUpdate         ? inputs.updates
                    : setting != inputs.settings.end() ? setting->second
                                                       : inputs.rate;
    wide.push_back(number);
    numbers.push_back(static_cast<float>(number));
  }
  std::vector<DenseView> scalars;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_wide = now().graph.graph.view().find(now().graph.numbers[i]).dtype() == TN_F64;
    scalars.emplace_back(is_wide ? TN_F64 : TN_F32, std::span<const int64_t>(),
                         is_wide ? static_cast<void*>(&wide[i]) : &numbers[i]);
  }
  for (const DenseView& scalar : scalars)
    views.push_back(*scalar);
  const StepGraph& of = now().graph;
  const Plan& results = now().plan;
  TN_CHECK(compile_now(views));
  // A step runs to its end, so that the states are never between two steps.
  TN_CHECK(now().plan.run(views));
  Outcome out;
  out.loss = *results[*of.loss].data<float>();
  if (of.share) out.share = *results[*of.share].data<float>();
  if (of.divisor) out.divisor = *results[*of.divisor].data<float>();
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

std::vector<std::string> Stepper::state_names() const {
  std::vector<std::string> names;
  for (const auto& [name, type] : states_)
    names.push_back(name);
  return names;
}

Result<Weights> Stepper::states() const {
  return states(state_names());
}

Result<Weights> Stepper::states(const std::vector<std::string>& names) const {
  Weights out;
  for (const std::string& name : names) {
    auto at = states_.find(name);
    if (at == states_.end()) return Status(TN_INTERNAL, cat("no state ", name));
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

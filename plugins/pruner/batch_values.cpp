// SPDX-License-Identifier: Apache-2.0
#include "batch_values.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::pruner {
namespace {

constexpr std::string_view kLoss = "pruner/loss";
constexpr std::string_view kTarget = "pruner/target";

// Appends the loss of output 0 against a new last input.
Status add_loss(tn_graph* graph, const std::string& loss) {
  TN_TRY(edit, Edit::begin(graph));
  Value out = edit.graph().outputs().at(0);
  Type type = out.type();
  if (!type.ranked || !is_float(type.dtype))
    return invalid("expected a model whose first output is a float tensor of known rank");
  Value value;
  if (loss == "cross_entropy") {
    if (type.rank() < 2)
      return invalid(cat("option loss: cross_entropy wants classes on axis 1 of the first output, ",
                         "got rank ", type.rank()));
    Type labels = type;
    labels.dtype = TN_I64;
    labels.dims.erase(labels.dims.begin() + 1);
    if (!labels.symbols.empty()) labels.symbols.erase(labels.symbols.begin() + 1);
    TN_TRY(target, edit.input(kTarget, labels));
    TN_TRY(made, edit.op("SoftmaxCrossEntropyLoss", {out, target}));
    value = made;
  } else {
    TN_TRY(target, edit.input(kTarget, type));
    TN_TRY(difference, edit.op("Sub", {out, target}));
    TN_TRY(square, edit.op("Mul", {difference, difference}));
    TN_TRY(mean, edit.op("ReduceMean", {square}, {{"keepdims", 0}}));
    value = mean;
  }
  TN_CHECK(edit.output(kLoss, value));
  return edit.commit();
}

Status differentiate(tn_ctx* ctx,
                     tn_graph* graph,
                     const std::vector<Value>& constants,
                     const Cancel& cancel) {
  nlohmann::json wrt = nlohmann::json::array();
  for (Value v : constants)
    wrt.push_back(v.name());
  nlohmann::json options{{"wrt", wrt}, {"output", kLoss}};
  TN_TRY(pass, Component::create(ctx, "tenon.pass/1", "autodiff.grad", options.dump()));
  StringSink report;
  return Status(pass.table<tn_pass>()->run(pass.self(), graph, cancel.raw(), report.get()));
}

}  // namespace

Result<BatchValues> BatchValues::of_data(tn_ctx* ctx,
                                         const BatchPlan& plan,
                                         std::string_view what) {
  BatchValues out;
  out.ctx_ = ctx;
  out.given_ = &plan;
  if (!plan.data) return invalid(cat("option data: expected a data set", what));
  uint64_t size = plan.data.table<tn_dataset>()->size(plan.data.self());
  out.samples_ = std::min(plan.samples, size);
  out.batch_ = std::min(plan.batch, out.samples_);
  if (out.samples_ == 0) return invalid(cat("option data: ", plan.data.id(), " is empty"));
  return out;
}

Status BatchValues::compile(const tn_graph* graph, const std::vector<tn_value_id>& taps) {
  tn_plan* compiled = nullptr;
  Status failed;
  for (std::string_view backend : {"onednn", "reference"}) {
    failed =
        Status(services.eval->compile(ctx_, graph, taps.data(), taps.size(),
                                      str(nlohmann::json{{"backend", backend}}.dump()), &compiled));
    if (failed.ok() || (failed.code() != TN_NOT_FOUND && failed.code() != TN_UNAVAILABLE)) break;
  }
  plan_.reset(compiled);
  first_ = Graph{graph}.outputs().size();
  n_results_ = first_ + taps.size();
  return failed;
}

Result<BatchValues> BatchValues::gradients(tn_ctx* ctx,
                                           const tn_graph* graph,
                                           const std::vector<Value>& constants,
                                           const BatchPlan& plan,
                                           const Cancel& cancel) {
  TN_TRY(out, of_data(ctx, plan, " with labels, for an importance that uses gradients"));
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph clone = OwnedGraph::take(raw);
  TN_CHECK(add_loss(raw, plan.loss));
  TN_CHECK(out.match_fields(clone.view()));  // before the costly part
  Status made = differentiate(ctx, raw, constants, cancel);
  if (made.ok()) made = out.compile(raw, {});
  if (!made.ok()) return std::move(made).in("gradients");
  out.first_ = 0;  // the outputs are what is wanted
  for (size_t i = 0; i < constants.size(); ++i)
    out.index_[constants[i].id] = i;
  return Result<BatchValues>(std::move(out));
}

Result<BatchValues> BatchValues::activations(tn_ctx* ctx,
                                             const tn_graph* graph,
                                             const std::vector<Value>& values,
                                             const BatchPlan& plan) {
  TN_TRY(out, of_data(ctx, plan, ", for an importance that uses activations"));
  TN_CHECK(out.match_fields(Graph{graph}));
  std::vector<tn_value_id> taps;
  for (Value value : values) {
    out.index_[value.id] = taps.size();
    taps.push_back(value.id);
  }
  Status made = out.compile(graph, taps);
  if (!made.ok()) return std::move(made).in("activations");
  return Result<BatchValues>(std::move(out));
}

Status BatchValues::match_fields(Graph graph) {
  StringSink text;
  TN_CHECK(given_->data.table<tn_dataset>()->fields(given_->data.self(), text.get()));
  nlohmann::json fields = nlohmann::json::parse(text.text, nullptr, false);
  std::vector<std::string> names;
  std::string listed;
  for (const nlohmann::json& one : fields.is_array() ? fields : nlohmann::json::array()) {
    names.push_back(one.value("name", ""));
    listed += (listed.empty() ? "" : ", ") + names.back();
  }
  n_fields_ = names.size();
  std::vector<Value> values = graph.inputs();
  for (size_t i = 0; i < values.size(); ++i) {
    Input input{std::string(graph.input_name(i)), values[i].type()};
    bool is_target = input.name == kTarget;
    auto at = std::find(names.begin(), names.end(), is_target ? given_->label : input.name);
    if (at == names.end())
      return invalid(cat("option ", is_target ? "label" : "data", ": expected a field ",
                         is_target ? given_->label : input.name, ", the data set has ", listed));
    input.field = static_cast<size_t>(at - names.begin());
    inputs_.push_back(std::move(input));
  }
  return {};
}

// Labels may come as any integers.
Result<Tensor> BatchValues::as_input(const Input& input, const Tensor& given) const {
  DLTensor t = given.dl();
  if (dtype_of(t) == input.type.dtype) return given;
  if (input.type.dtype != TN_I64)
    return invalid(cat("option data: field ", input.name, ": the model wants ",
                       dtype_name(input.type.dtype), ", got ", dtype_name(dtype_of(t))));
  TN_TRY(numbers, numbers_as<int64_t>(t));
  return Tensor::of<int64_t>(ctx_, TN_I64, shape_of(t), numbers);
}

Status BatchValues::load(uint64_t batch, const Cancel& cancel) {
  uint64_t first = batch * batch_, last = std::min(samples_, first + batch_);
  std::vector<uint64_t> samples(last - first);
  std::iota(samples.begin(), samples.end(), first);
  Collected fields(ctx_, n_fields_);
  TN_CHECK(given_->data.table<tn_dataset>()->batch(given_->data.self(), samples.data(),
                                                   samples.size(), 0, fields.outputs()));
  std::vector<Tensor> tensors;
  std::vector<DLTensor> views;
  for (const Input& input : inputs_) {
    TN_TRY(tensor, as_input(input, fields[input.field]));
    tensors.push_back(tensor);
    views.push_back(tensors.back().dl());
  }
  std::vector<const DLTensor*> in;
  for (const DLTensor& one : views)
    in.push_back(&one);
  Collected results(ctx_, n_results_);
  Status ran(
      services.eval->run(plan_.get(), in.data(), in.size(), results.outputs(), cancel.raw()));
  if (!ran.ok()) return std::move(ran).in(cat("values of samples ", first, " to ", last - 1));
  results_ = results.take();
  return {};
}

const Tensor* BatchValues::of(Value value) const {
  auto at = index_.find(value.id);
  size_t place = at == index_.end() ? results_.size() : first_ + at->second;
  return place < results_.size() && results_[place] ? &results_[place] : nullptr;
}

}  // namespace tenon::pruner

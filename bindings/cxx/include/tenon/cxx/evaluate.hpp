// SPDX-License-Identifier: Apache-2.0
#pragma once
// A metric over a data set: labels of the data set, or the outputs of a reference model.

#include <optional>

#include "tenon/role/metric.h"

#include "tenon/cxx/batches.hpp"

namespace tenon::cxx {

struct EvaluateChoice {
  std::string metric;  // "accuracy", or an id
  Json metric_options = Json::object();
  RunChoice run;
  std::optional<Model> against;  // for metrics of outputs
  RunChoice against_run;         // how the reference runs: fp32 unless told
  uint64_t batch = 0;
  uint64_t limit = 0;
};

class Metric {
 public:
  Metric(const SessionPtr& session, const std::string& name, const Json& options) {
    std::string id = full_id(*session, "tenon.metric/1", "metrics", name);
    for (const Json& one : list_components(*session, "tenon.metric/1")) {
      if (one["id"] != id || !one["schema"].is_object()) continue;
      const Json& schema = one["schema"];
      against_outputs_ = schema.value("against", "labels") == "outputs";
      if (Json::json_pointer at("/properties/label/default"); schema.contains(at))
        label_ = schema[at].get<std::string>();
    }
    if (options.contains("label") && options["label"].is_string()) label_ = options["label"];
    component_ = Component(session, "tenon.metric/1", id, Options(session, options));
    table_ = component_.table<tn_metric>("tenon.metric/1", &self_);
  }
  bool against_outputs() const { return against_outputs_; }
  // The field of the data set that holds the labels.
  const std::string& label() const { return label_; }

  void update(const std::vector<Tensor>& outputs, const std::vector<Tensor>& labels) {
    std::vector<const DLTensor*> out = views(outputs);
    std::vector<const DLTensor*> label = views(labels);
    check(table_->update(self_, out.data(), out.size(), label.data(), label.size()));
  }
  Json value() const {
    double number = 0;
    int32_t higher = 1;
    check(table_->value(self_, &number, &higher));
    TextSink text;
    check(table_->details(self_, text.get()));
    Json details = Json::parse(text.text(), nullptr, false);
    return {{"metric", component_.id()},
            {"value", number},
            {"higher_is_better", higher != 0},
            {"details", details.is_object() ? details : Json::object()}};
  }

 private:
  static std::vector<const DLTensor*> views(const std::vector<Tensor>& tensors) {
    std::vector<const DLTensor*> all;
    for (const Tensor& tensor : tensors)
      all.push_back(tensor.view());
    return all;
  }
  Component component_;
  const tn_metric* table_ = nullptr;
  void* self_ = nullptr;
  bool against_outputs_ = false;
  std::string label_ = "label";
};

inline size_t label_field(const Dataset& data, const std::string& name) {
  std::string known;
  for (size_t i = 0; i < data.fields().size(); ++i) {
    if (data.fields()[i].name == name) return i;
    known += cat(known.empty() ? "" : ", ", data.fields()[i].name);
  }
  invalid(cat("metric: option label: expected one of ", known, ", got '", name, "'"));
}

// {"metric", "value", "higher_is_better", "details", "samples", "backend", ...}
inline Json evaluate(const Model& model, const Dataset& data, const EvaluateChoice& choice) {
  const SessionPtr& session = model.session();
  Metric metric(session, choice.metric, choice.metric_options);
  Batches batches(model, data, choice.batch, choice.limit);
  Plan plan(model, compile_options(*session, choice.run));
  std::optional<Plan> reference;
  size_t label = 0;
  if (metric.against_outputs()) {
    if (!choice.against)
      invalid(cat("metric ", choice.metric, ": expected a reference model, got none"));
    reference.emplace(*choice.against, compile_options(*session, choice.against_run));
  } else {
    label = label_field(data, metric.label());
  }
  Progress progress(*session, "evaluate", batches.samples());
  for (uint64_t i = 0; i < batches.count(); ++i) {
    session->stop_if_cancelled();
    Batches::Batch batch = batches.at(i);
    std::vector<Tensor> outputs = batches.cut(plan.run(batch.inputs), batch.samples);
    std::vector<Tensor> right = reference ? batches.cut(reference->run(batch.inputs), batch.samples)
                                          : std::vector<Tensor>{batch.fields[label]};
    metric.update(outputs, right);
    progress.update(i * batches.batch() + static_cast<uint64_t>(batch.samples));
  }
  Json result = metric.value();
  result["samples"] = batches.samples();
  result["fallback_nodes"] = plan.describe().value("fallback_nodes", Json::array());
  return result;
}

}  // namespace tenon::cxx

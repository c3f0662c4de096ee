// SPDX-License-Identifier: Apache-2.0
#pragma once
// What passes report of models on data sets: a metric, and where two models differ.

#include <cmath>
#include <optional>

#include "tenon/cxx/dataset.hpp"
#include "tenon/cxx/plan.hpp"

namespace tenon::cxx {

struct EvaluateChoice {
  std::string metric;  // "accuracy", or an id
  Json metric_options = Json::object();
  RunChoice run;
  std::optional<Model> against;  // for metrics of outputs; it runs in its own precision
  uint64_t batch = 0;            // 0: what the model fixes, or 32
  uint64_t limit = 0;            // 0: all samples
};

struct CompareChoice {
  RunChoice run;
  RunChoice other_run;  // of the second model
  uint64_t batch = 0;
  uint64_t limit = 64;
  bool layers = true;  // false: the outputs alone
  std::string mask;    // the input that is 0 at padding, which is not compared
};

namespace detail {

inline Json report_of(const Model& model,
                      const std::string& pass,
                      const Dataset& data,
                      const Json& values,
                      const char* graph_option,
                      const Model* other) {
  Options options(model.session(), values);
  options.set("data", data.component());
  if (other) options.set(graph_option, other->get());
  Json report;
  model.apply(pass, options, &report);
  return report;
}

}  // namespace detail

// {"metric", "value", "higher_is_better", "details", "samples", "backend", ...}: metrics.evaluate.
inline Json evaluate(const Model& model, const Dataset& data, const EvaluateChoice& choice) {
  const Session& session = *model.session();
  // The model that it is judged by runs in full precision, else alike.
  RunChoice against = choice.run;
  against.precision.clear();
  Json values{{"metric", full_id(session, "tenon.metric/1", "metrics", choice.metric)},
              {"metric_options", choice.metric_options},
              {"plan", compile_options(session, choice.run)},
              {"against_plan", compile_options(session, against)},
              {"limit", choice.limit}};
  if (choice.batch) values["batch"] = choice.batch;
  Json report = detail::report_of(model, "metrics.evaluate", data, values, "against",
                                  choice.against ? &*choice.against : nullptr);
  if (report["value"].is_null()) report["value"] = std::nan("");  // which JSON does not have
  return report;
}

// {"samples", "compared", "outputs", "snr_db", "layers"}: metrics.compare.
inline Json compare(const Model& a, const Model& b, const Dataset& data, const CompareChoice& how) {
  const Session& session = *a.session();
  Json values{{"plan", compile_options(session, how.run)},
              {"with_plan", compile_options(session, how.other_run)},
              {"layers", how.layers},
              {"limit", how.limit}};
  if (how.batch) values["batch"] = how.batch;
  if (!how.mask.empty()) values["mask"] = how.mask;
  return detail::report_of(a, "metrics.compare", data, values, "with", &b);
}

}  // namespace tenon::cxx

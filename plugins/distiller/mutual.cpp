// SPDX-License-Identifier: Apache-2.0
// "distiller.mutual": networks that learn together, as several outputs of one model. Each learns
// from labels and from the softened answers of the others as they are now, which are not changed by
// it (Zhang et al., "Deep mutual learning", CVPR 2018, equation 8). With `leader` only that output
// teaches: heads along a network learn from the deepest one (Zhang et al., "Be your own teacher",
// ICCV 2019).
#include "distilled_options.hpp"
#include "soft.hpp"

namespace tenon::distiller {
namespace {

class Mutual {
 public:
  static Result<Mutual> create(tn_ctx* ctx, const Options& options) {
    Mutual out;
    out.plan_.temperature = options.number("temperature");
    out.plan_.alpha = options.number("alpha");
    out.plan_.axis = options.integer("axis");
    out.leader_ = options.integer("leader");
    TN_TRY(hard, hard_option(ctx, options, out.plan_));
    out.hard_ = std::move(hard);
    return Result<Mutual>(std::move(out));
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    const auto n = static_cast<int64_t>(objective.predictions.size());
    if (n < 2)
      return invalid(
          cat("expected a model of two outputs and more that learn from each other, ", "got ", n));
    if (leader_ >= n)
      return invalid(cat("option leader: expected -1 or an output below ", n, ", got ", leader_));
    TN_CHECK(check_labels(hard_, objective.targets.size()));
    Precise b(edit);
    Value sum;
    for (int64_t i = 0; i < n; ++i) {
      TN_TRY(one, loss_of(edit, objective, static_cast<size_t>(i)));
      sum = sum ? b.add(b.widened(sum, one), b.widened(one, sum)) : one;
    }
    TN_CHECK(b.status());
    return sum;
  }

 private:
  // Of output i: labels, and the mean over those that teach it; a leader has labels alone.
  Result<Value> loss_of(EditView edit, const Objective& objective, size_t i) const {
    Precise b(edit);
    Value own = scores_of(objective.predictions[i]), soft;
    double teachers = 0;
    for (size_t j = 0; j < objective.predictions.size(); ++j) {
      if (j == i || (leader_ >= 0 && j != static_cast<size_t>(leader_))) continue;
      Value other = b.node({.type = "StopGradient",
                            .inputs = {scores_of(objective.predictions[j])},
                            .domain = "tenon"})
                        .output();
      TN_CHECK(b.status());
      TN_TRY(term, soft_loss(edit, own, other, plan_));
      soft = soft ? b.add(soft, term) : term;
      ++teachers;
    }
    if (soft) soft = b.scaled(soft, 1 / teachers);
    Value labelled;
    if (hard_) {
      TN_TRY(made, hard_loss(hard_, edit, objective, objective.targets.size(), i));
      labelled = made;
    }
    Value loss = mix(b, soft, labelled, plan_.alpha);
    if (!loss) loss = b.number(0, own.dtype());
    TN_CHECK(b.status());
    return loss;
  }

  SoftPlan plan_;
  int64_t leader_ = -1;
  Component hard_;
};

}  // namespace
}  // namespace tenon::distiller

TENON_LOSS(mutual,
           tenon::distiller::Mutual,
           "distiller.mutual",
           "outputs of one model learn from labels and from each other",
           R"({"properties": {
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "divides the scores of all"},
    "leader": {"type": "integer", "minimum": -1, "default": -1, "description": "the one output that teaches the others; -1: all teach all"},
    "hard": {"type": "component", "role": "tenon.loss/1", "description": "the loss of each output against the labels, of share 1 - alpha; default: trainer.cross_entropy over the same axis"},
    "axis": {"type": "integer", "default": 1, "description": "where the classes are"},
    )" TENON_ALPHA_OPTION("0.5") "}}")

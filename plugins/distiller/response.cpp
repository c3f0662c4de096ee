// SPDX-License-Identifier: Apache-2.0
// "distiller.response": the loss of a student that learns from a teacher's answers, softened by a
// temperature, and from labels (Hinton, Vinyals and Dean 2015).
#include "soft.hpp"

namespace tenon::distiller {
namespace {

class Response {
 public:
  static Result<Response> create(tn_ctx* ctx, const Options& options) {
    Response out;
    out.plan_ = SoftPlan::read(options);
    TN_TRY(teacher, Teacher::from(options));
    out.teacher_ = std::move(teacher);
    if (!out.teacher_ == !out.plan_.cached)
      return invalid(out.teacher_ ? "options teacher, cached: expected one of them, got both"
                                  : "option teacher: expected a model to learn from, got none");
    if (out.teacher_) {
      TN_TRY(answer, out.teacher_.output(out.plan_.teacher_output));
      out.answer_ = scores_of(answer);
    }
    TN_TRY(hard, hard_option(ctx, options, out.plan_));
    out.hard_ = std::move(hard);
    return Result<Response>(std::move(out));
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    if (plan_.cached) {
      if (objective.targets.empty())
        return invalid("expected the teacher's cached answers as the last target, got no targets");
      return mixed_loss(hard_, edit, objective, objective.targets.back(), plan_);
    }
    TN_TRY(joined, teacher_.join(edit, objective, {answer_}));
    return mixed_loss(hard_, edit, objective, joined[0], plan_);
  }

 private:
  SoftPlan plan_;
  Teacher teacher_;
  Value answer_;  // in the teacher's own graph
  Component hard_;
};

}  // namespace
}  // namespace tenon::distiller

TENON_LOSS(response,
           tenon::distiller::Response,
           "distiller.response",
           "learn from a teacher's softened answers and from labels",
           R"({
  "properties": {
    "teacher": {"type": "graph", "description": "the model to learn from; it reads what the student reads"},
    "cached": {"type": "boolean", "default": false,
               "description": "no teacher: the last target is its answer, as distiller.cached gives it"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "divides the scores of both"},
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7,
              "description": "share of the teacher's part; 1: no labels are needed"},
    "hard": {"type": "component", "role": "tenon.loss/1", "default": "trainer.cross_entropy",
             "description": "the loss against the labels, of share 1 - alpha"},
    "axis": {"type": "integer", "default": 1, "description": "where the classes are"},
    "prediction": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the student"},
    "teacher_output": {"type": "string", "description": "which output of the teacher; default: the first"}}})")

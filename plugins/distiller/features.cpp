// SPDX-License-Identifier: Apache-2.0
// "distiller.features": a student that learns what a teacher computes inside (FitNets, ICLR 2015),
// beside labels and, with alpha above 0, the teacher's answers.
#include "hints.hpp"

namespace tenon::distiller {
namespace {

class Features {
 public:
  static Result<Features> create(tn_ctx* ctx, const Options& options) {
    Features out;
    out.plan_ = SoftPlan::read(options);
    out.weight_ = options.number("weight");
    out.seed_ = static_cast<uint64_t>(options.integer("seed"));
    std::string adapter = options.text("adapter");
    out.adapter_ = adapter == "auto"     ? Adapter::kAuto
                   : adapter == "always" ? Adapter::kAlways
                                         : Adapter::kNone;
    TN_TRY(pairs, pairs_option(options));
    out.pairs_ = std::move(pairs);
    TN_TRY(teacher, Teacher::from(options));
    out.teacher_ = std::move(teacher);
    for (const Pair& pair : out.pairs_) {
      TN_TRY(value, out.teacher_.value(pair.teacher));
      out.wanted_.push_back(value);
    }
    if (out.plan_.alpha > 0) {
      TN_TRY(answer, out.teacher_.output(out.plan_.teacher_output));
      out.wanted_.push_back(scores_of(answer));
    }
    TN_TRY(hard, hard_option(ctx, options, out.plan_));
    out.hard_ = std::move(hard);
    return Result<Features>(std::move(out));
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    std::vector<Value> inside;
    for (const Pair& pair : pairs_) {
      TN_TRY(value, named_value(edit.graph(), pair.student, "the student"));
      inside.push_back(value);
    }
    TN_TRY(joined, teacher_.join(edit, objective, wanted_));
    Value answer = plan_.alpha > 0 ? joined.back() : Value{};
    TN_TRY(mixed, mixed_loss(hard_, edit, objective, answer, plan_));
    Precise b(edit);
    Value sum = mixed;
    for (size_t i = 0; i < inside.size(); ++i) {
      TN_TRY(hint, hint_loss(edit, objective, inside[i], joined[i], adapter_, seed_, i));
      Value share = b.scaled(hint, weight_);
      sum = b.add(b.widened(sum, share), b.widened(share, sum));
    }
    TN_CHECK(b.status());
    return sum;
  }

 private:
  SoftPlan plan_;
  double weight_ = 1;
  uint64_t seed_ = 0;
  Adapter adapter_ = Adapter::kAuto;
  std::vector<Pair> pairs_;
  Teacher teacher_;
  std::vector<Value> wanted_;  // in the teacher's own graph: of the pairs, then its answer
  Component hard_;
};

}  // namespace
}  // namespace tenon::distiller

TENON_LOSS(features,
           tenon::distiller::Features,
           "distiller.features",
           "learn what a teacher computes inside, beside labels and its answers",
           R"({
  "properties": {
    "teacher": {"type": "graph", "description": "the model to learn from; it reads what the student reads"},
    "features": {"type": ["array", "string", "object"], "items": {"type": "string"},
                 "description": "names of values of both models, or an object: student's name -> teacher's name"},
    "weight": {"type": "number", "minimum": 0, "default": 1, "description": "of each hint's mean squared difference"},
    "adapter": {"type": "string", "enum": ["auto", "always", "none"], "default": "auto",
                "description": "a trained 1x1 convolution or product behind the student's value; auto: where channels differ"},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "of the adapters' first numbers"},
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "share of the teacher's answers, as in distiller.response"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "divides the scores of both"},
    "hard": {"type": "component", "role": "tenon.loss/1", "default": "trainer.cross_entropy",
             "description": "the loss against the labels, of share 1 - alpha"},
    "axis": {"type": "integer", "default": 1, "description": "where the classes are"},
    "prediction": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the student"},
    "teacher_output": {"type": "string", "description": "which output of the teacher; default: the first"}},
  "required": ["teacher", "features"]})")

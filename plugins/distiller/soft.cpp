// SPDX-License-Identifier: Apache-2.0
#include "soft.hpp"

namespace tenon::distiller {
namespace {

Status check_answers(Value student, Value teacher, int64_t axis) {
  Type a = student.type(), b = teacher.type();
  for (const Type& type : {a, b})
    if (!type.ranked || !is_float(type.dtype))
      return invalid(cat("expected scores of known rank and float type, got ", type_text(type)));
  if (!may_equal(a, b))
    return invalid(cat("the student's ", student.name(), " is ", type_text(a),
                       ", the teacher's answer is ", type_text(b), ": expected the same shape"));
  auto rank = static_cast<int64_t>(a.rank());
  if (axis >= -rank && axis < rank) return {};
  return invalid(
      cat("option axis: expected ", -rank, "..", rank - 1, " for ", type_text(a), ", got ", axis));
}

}  // namespace

Value Precise::op(std::string_view type, std::vector<Value> inputs, std::vector<Attr> attrs) {
  Value made = Builder::op(type, std::move(inputs), std::move(attrs));
  if (made) {
    Status noted = edit().set_note(made.producer().id, "cast", any_text("fp32"));
    if (!noted.ok()) fail(std::move(noted));
  }
  return made;
}

Value Precise::widened(Value x, Value other) {
  return cast(x, x.dtype() == TN_F64 || other.dtype() == TN_F64 ? TN_F64 : TN_F32);
}

SoftPlan SoftPlan::read(const Options& options) {
  SoftPlan out{.temperature = options.number("temperature"),
               .alpha = options.number("alpha"),
               .axis = options.integer("axis"),
               .teacher_output = options.text("teacher_output"),
               .cached = options.flag("cached")};
  if (options.has("prediction"))
    out.prediction = static_cast<uint64_t>(options.integer("prediction"));
  return out;
}

Result<Value> soft_loss(EditView edit, Value student, Value teacher, const SoftPlan& plan) {
  TN_CHECK(check_answers(student, teacher, plan.axis));
  Precise b(edit);
  Value s = b.widened(student, teacher), t = b.widened(teacher, student);
  Value softness = b.setting("temperature", plan.temperature, s);
  s = b.op("Div", {s, softness});
  t = b.op("Div", {t, softness});
  Attr axis("axis", plan.axis);
  Value log_s = b.op("LogSoftmax", {s}, {axis}), log_t = b.op("LogSoftmax", {t}, {axis});
  Value terms = b.mul(b.op("Exp", {log_t}), b.sub(log_t, log_s));
  Value each = b.op("ReduceSum", {terms, b.ints({plan.axis})}, {{"keepdims", 0}});
  Value loss = b.mul(b.mean(each), b.mul(softness, softness));
  TN_CHECK(b.status());
  return loss;
}

Result<Value> hard_loss(const Component& loss,
                        EditView edit,
                        const Objective& objective,
                        uint64_t n_targets,
                        std::optional<uint64_t> prediction) {
  tn_objective given = *objective.raw;
  given.n_targets = n_targets;
  if (prediction) {
    given.n_predictions = 1;
    given.predictions += *prediction;
  }
  tn_value_id out = 0;
  Status built(loss.table<tn_loss>()->build(loss.self(), edit.raw, &given, &out));
  if (!built.ok()) return std::move(built).in(cat("option hard: ", loss.id()));
  return edit.value(out);
}

Status check_labels(const Component& hard, uint64_t n_labels) {
  if (!hard || n_labels > 0) return {};
  return invalid(
      "expected labels for the hard part of the loss, got none: give targets, or alpha = 1");
}

Value mix(Precise& b, Value soft, Value hard, double alpha) {
  if (!hard) return soft;
  if (!soft) return b.widened(hard, hard);
  Value wide = b.widened(hard, soft);
  Value rest = b.mul(wide, b.sub(b.number(1, wide.dtype()), b.setting("alpha", alpha, wide)));
  Value share = b.mul(soft, b.setting("alpha", alpha, soft));
  return b.add(b.widened(share, rest), rest);
}

Result<Value> mixed_loss(const Component& hard,
                         EditView edit,
                         const Objective& objective,
                         Value teacher,
                         const SoftPlan& plan) {
  uint64_t n_labels = objective.targets.size() - (plan.cached ? 1 : 0);
  TN_CHECK(check_labels(hard, n_labels));
  const uint64_t prediction = plan.prediction.value_or(0);
  if (prediction >= objective.predictions.size())
    return invalid(cat("option prediction: expected a number below ", objective.predictions.size(),
                       ", got ", prediction));
  Precise b(edit);
  Value soft, labelled;
  if (teacher) {
    Value student = scores_of(objective.predictions[prediction]);
    TN_TRY(made, soft_loss(edit, student, teacher, plan));
    soft = made;
  }
  if (hard) {
    TN_TRY(made, hard_loss(hard, edit, objective, n_labels, plan.prediction));
    labelled = made;
  }
  Value loss = mix(b, soft, labelled, plan.alpha);
  TN_CHECK(b.status());
  return loss;
}

Result<Component> hard_option(tn_ctx* ctx, const Options& options, const SoftPlan& plan) {
  if (plan.alpha == 1) return Component();
  if (!options.has("hard")) {
    Result<Component> made = Component::create(ctx, "tenon.loss/1", "trainer.cross_entropy",
                                               cat("{\"axis\": ", plan.axis, "}"));
    if (!made.ok()) return std::move(made).status().in("option hard");
    return made;
  }
  return component_option(ctx, options, "hard", "tenon.loss/1");
}

}  // namespace tenon::distiller

// SPDX-License-Identifier: Apache-2.0
#include "distilled.hpp"

namespace tenon::distiller {

Result<Distilled> Distilled::create(tn_ctx* ctx, const Options& options) {
  Distilled out;
  out.plan_ = SoftPlan::read(options);
  out.weight_ = options.number("weight");
  out.match_plan_ = MatchPlan::read(options);
  if (options.has("features")) {
    TN_TRY(pairs, pairs_option(options));
    out.pairs_ = std::move(pairs);
    TN_TRY(match, find_match(options.text("match")));
    out.match_ = match;
  }
  TN_TRY(teacher, Teacher::from(options));
  out.teacher_ = std::move(teacher);
  if (out.teacher_ && out.plan_.cached && out.pairs_.empty())
    return invalid("options teacher, cached: expected one of them, got both");
  if (out.teacher_) TN_CHECK(out.wanted_of(out.teacher_).status());
  TN_TRY(hard, hard_option(ctx, options, out.plan_));
  out.hard_ = std::move(hard);
  return Result<Distilled>(std::move(out));
}

Result<std::vector<Value>> Distilled::wanted_of(const Teacher& teacher) const {
  std::vector<Value> wanted;
  for (const Pair& pair : pairs_) {
    TN_TRY(value, teacher.value(pair.teacher));
    wanted.push_back(value);
  }
  if (plan_.alpha == 0 || plan_.cached) return wanted;
  TN_TRY(answer, teacher.output(plan_.teacher_output));
  wanted.push_back(scores_of(answer));
  return wanted;
}

Result<Value> Distilled::build(EditView edit, const Objective& objective) const {
  if (plan_.cached && objective.targets.empty())
    return invalid("expected the teacher's cached answers as the last target, got no targets");
  std::vector<Value> inside, joined;
  for (const Pair& pair : pairs_) {
    TN_TRY(value, named_value(edit.graph(), pair.student, "the student"));
    inside.push_back(value);
  }
  if (needs_teacher()) {
    TN_TRY(original, teacher_ ? Teacher() : Teacher::original(edit.graph()));
    const Teacher& teacher = teacher_ ? teacher_ : original;
    TN_TRY(wanted, wanted_of(teacher));
    TN_TRY(values, teacher.join(edit, objective, wanted));
    joined = std::move(values);
  }
  Value answer;
  if (plan_.alpha > 0) answer = plan_.cached ? objective.targets.back() : joined.back();
  TN_TRY(loss, mixed_loss(hard_, edit, objective, answer, plan_));
  return with_hints(edit, objective, loss, inside, joined);
}

Result<Value> Distilled::with_hints(EditView edit,
                                    const Objective& objective,
                                    Value loss,
                                    const std::vector<Value>& inside,
                                    const std::vector<Value>& joined) const {
  Precise b(edit);
  for (size_t i = 0; i < inside.size(); ++i) {
    TN_TRY(hint, match_->loss(edit, {objective, inside[i], joined[i], i}, match_plan_));
    Value share = b.mul(hint, b.setting("weight", weight_, hint));
    loss = b.add(b.widened(loss, share), b.widened(share, loss));
  }
  TN_CHECK(b.status());
  return loss;
}

}  // namespace tenon::distiller

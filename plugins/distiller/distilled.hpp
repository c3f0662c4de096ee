// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of a student with a teacher: labels, answers and hints, each where it is asked for. The
// components differ in their options.

#include "hints.hpp"

namespace tenon::distiller {

class Distilled {
 public:
  static Result<Distilled> create(tn_ctx* ctx, const Options& options);
  Result<Value> build(EditView edit, const Objective& objective) const;

 private:
  bool needs_teacher() const { return !pairs_.empty() || (plan_.alpha > 0 && !plan_.cached); }
  // What is needed of the teacher, in its own graph: of the pairs, then its answer.
  Result<std::vector<Value>> wanted_of(const Teacher& teacher) const;
  Result<Value> with_hints(EditView edit,
                           const Objective& objective,
                           Value loss,
                           const std::vector<Value>& inside,
                           const std::vector<Value>& joined) const;

  SoftPlan plan_;
  double weight_ = 1;
  MatchPlan match_plan_;
  const Match* match_ = nullptr;
  std::vector<Pair> pairs_;
  Teacher teacher_;  // falsy: the original of the student
  Component hard_;
};

}  // namespace tenon::distiller

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hints (Romero et al., "FitNets", ICLR 2015, section 2.2): a value inside the student is pulled
// towards a value inside the teacher, through a trained linear adapter where their channels differ.

#include "matches.hpp"

namespace tenon::distiller {

struct Pair {
  std::string student, teacher;
};
// From the option: a list of names that both models have, or an object student -> teacher.
Result<std::vector<Pair>> pairs_option(const Options& options);

// The mean squared difference of the pair.
Result<Value> hint_loss(EditView edit, const Matched& pair, const MatchPlan& plan);

}  // namespace tenon::distiller

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rules the passes of several rules run, in order: a new rule is a word here and in CMake.

#include "rule.hpp"

TENON_DECLARE_RULE(constants)
TENON_DECLARE_RULE(identity)
TENON_DECLARE_RULE(dead_code)
TENON_DECLARE_RULE(conv_batch_norm)

namespace tenon::fusion {

// Keeps the operators as they are written.
inline std::vector<const Rule*> fold_rules() {
  return {&tenon_rule_constants, &tenon_rule_identity, &tenon_rule_dead_code};
}

inline std::vector<const Rule*> default_rules() {
  std::vector<const Rule*> rules = fold_rules();
  rules.push_back(&tenon_rule_conv_batch_norm);
  return rules;
}

}  // namespace tenon::fusion

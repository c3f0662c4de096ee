// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules in rounds until a round changes nothing. The report has rounds, nodes before and after,
// and how often each rule was applied.

#include <vector>

#include "rule.hpp"

namespace tenon::fusion {

Status run_rounds(tn_graph* graph,
                  const Settings& settings,
                  const std::vector<const Rule*>& rules,
                  Sink& report);

}  // namespace tenon::fusion

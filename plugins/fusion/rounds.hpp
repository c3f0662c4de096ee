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

// A pass of these rules, until none applies. kIntegersOnly: constants of floating point stay as
// they are.
template <bool kIntegersOnly, const Rule&... kRules>
class RoundsPass {
 public:
  static Result<RoundsPass> create(tn_ctx* ctx, const Options& options) {
    Settings settings = Settings::from(ctx, options);
    settings.integers_only = kIntegersOnly;
    return RoundsPass(std::move(settings));
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    settings_.cancel = cancel.raw();
    return run_rounds(graph, settings_, {&kRules...}, report);
  }

 private:
  explicit RoundsPass(Settings settings) : settings_(std::move(settings)) {}
  Settings settings_;
};

}  // namespace tenon::fusion

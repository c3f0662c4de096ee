// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores from anyone's importance component: of the channels of groups, or of single weights.

#include <string>
#include <vector>

#include "tenon/role/importance.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/run.hpp"

#include "groups.hpp"

namespace tenon::pruner {

// The component that the options "importance" and "importance_options" name: an id, or the last
// word of one of ours.
Result<Component> importance_option(tn_ctx* ctx, const Options& options);

class Scoring {
 public:
  explicit Scoring(const Component& importance) : importance_(importance) {}
  // One score per channel.
  Result<std::vector<double>> channels(const Group& group, uint64_t index) const;
  // One score per element.
  Result<std::vector<double>> elements(const Weight& weight, uint64_t index) const;

 private:
  Result<std::vector<double>> score(const tn_channel_group& group) const;
  const Component& importance_;
};

// Scores of one group divided by their mean, so that groups compare.
void divide_by_mean(std::vector<double>& scores);

}  // namespace tenon::pruner

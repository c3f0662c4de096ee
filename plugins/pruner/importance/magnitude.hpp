// SPDX-License-Identifier: Apache-2.0
#pragma once
// What scores by the size of weights share: which weights count, and the option that says so.

#include <span>

#include "tenon/sdk/role/importance.hpp"

// A macro, because the schema is a part of the description that the plugin embeds as one literal.
#define PRUNER_MAGNITUDE_OPTIONS                                      \
  R"({"properties": {"reads": {"type": "boolean", "default": true, )" \
  R"("description": "count the layers that read a channel, beside those that make it"}}})"

namespace tenon::pruner {

// Norm: static double of(double weight), summed over a channel, and total(double sum).
template <class Norm>
class Magnitude {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<Magnitude> create(tn_ctx*, const Options& options) {
    Magnitude out;
    out.reads_ = options.flag("reads");
    return out;
  }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    for (const tn_group_member* member : members_of(group)) {
      bool counts = member->kind == TN_MEMBER_MAKES || (reads_ && member->kind == TN_MEMBER_READS);
      if (!counts) continue;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += Norm::of(double{member->data[at]});
      });
    }
    for (double& score : scores)
      score = Norm::total(score);
    return {};
  }

 private:
  bool reads_ = true;
};

}  // namespace tenon::pruner

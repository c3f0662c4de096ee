// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.l2": the root of the sum of squares of a channel's weights, in the layers that
// make it and in those that read it (Li et al., "Pruning filters for efficient ConvNets", 2017).
#include <cmath>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class L2 {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<L2> create(tn_ctx*, const Options& options) {
    L2 out;
    out.reads_ = options.flag("reads");
    return out;
  }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    for (const tn_group_member* member : members_of(group)) {
      bool counts = member->kind == TN_MEMBER_MAKES || (reads_ && member->kind == TN_MEMBER_READS);
      if (!counts) continue;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += double{member->data[at]} * member->data[at];
      });
    }
    for (double& score : scores)
      score = std::sqrt(score);
    return {};
  }

 private:
  bool reads_ = true;
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(l2,
                 tenon::pruner::L2,
                 "pruner.importance.l2",
                 "the root of the sum of squares of a channel's weights",
                 R"({"properties": {"reads": {"type": "boolean", "default": true,
  "description": "count the layers that read a channel, beside those that make it"}}})")

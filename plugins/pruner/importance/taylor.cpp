// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.taylor": by how much the loss would change to first order when a channel goes,
// squared (Molchanov et al., "Importance estimation for neural network pruning", CVPR 2019, eq. 8).
// The sum of gradient times weight over all weights that read a channel is the gradient by a gate
// on it, whatever normalization made it; where nothing reads it, those that make it serve. A single
// weight is its own gate.
#include <algorithm>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Taylor {
 public:
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static Result<Taylor> create(tn_ctx*, const Options&) { return Taylor{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    auto all = members_of(group);
    bool read = std::any_of(all.begin(), all.end(), [](const tn_group_member* member) {
      return member->kind == TN_MEMBER_READS;
    });
    for (const tn_group_member* member : all) {
      if (member->kind != (read ? TN_MEMBER_READS : TN_MEMBER_MAKES)) continue;
      if (!member->gradient)
        return invalid(cat("no gradient of ", view(member->value), " was given"));
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += double{member->gradient[at]} * member->data[at];
      });
    }
    for (double& score : scores)
      score *= score;
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(taylor,
                 tenon::pruner::Taylor,
                 "pruner.importance.taylor",
                 "squared change of the loss to first order; needs data with labels",
                 "{}")

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.shapley": by how much the loss rises when a channel goes, averaged over the
// orders in which all of its group can go (Ancona et al., "Shapley value as principled metric for
// structured network pruning", 2020, arXiv 2006.01795). Orders are sampled (Castro et al., 2009),
// new ones for each batch, so that the spread over batches gives the standard error. Scores of a
// group add up to the loss without it less the loss with it; a negative one harms.
#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Shapley {
 public:
  static constexpr uint32_t kNeeds = kImportanceEffects;
  static Result<Shapley> create(tn_ctx*, const Options&) { return Shapley{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    bool is_given = false;
    for (const tn_group_member* member : members_of(group)) {
      if (member->kind != kMemberEffect) continue;
      is_given = true;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += member->data[at] / static_cast<double>(member->outer);
      });
    }
    if (!is_given)
      return unsupported(cat("no effects of ", view(group.name), " were given: single weights are ",
                             "too many to take out one by one, use taylor or hessian"));
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(
    shapley,
    tenon::pruner::Shapley,
    "pruner.importance.shapley",
    "rise of the loss when a channel goes, over sampled orders; needs data with labels",
    "{}")

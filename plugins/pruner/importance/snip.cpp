// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.snip": how much the loss feels a weight, the size of gradient times weight
// (Lee, Ajanthan and Torr, "SNIP", ICLR 2019, eq. 6): for networks that are not trained yet. Of a
// channel the sizes are summed, so that weights that pull against each other do not cancel.
#include <cmath>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Snip {
 public:
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static Result<Snip> create(tn_ctx*, const Options&) { return Snip{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    for (const tn_group_member* member : members_of(group)) {
      if (member->kind != TN_MEMBER_READS && member->kind != TN_MEMBER_MAKES) continue;
      if (!member->gradient)
        return invalid(cat("no gradient of ", view(member->value), " was given"));
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += std::abs(double{member->gradient[at]} * member->data[at]);
      });
    }
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(snip,
                 tenon::pruner::Snip,
                 "pruner.importance.snip",
                 "size of gradient times weight, before training; needs data with labels",
                 "{}")

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.hessian": half the second derivative of the loss by a weight times its square,
// what removing it costs where the gradient vanishes (LeCun et al., "Optimal brain damage", 1990,
// eq. 5). The second derivatives are the diagonal of the empirical Fisher matrix: the mean over
// batches of squared gradients, so that batches of one sample come nearest to it. A channel is
// worth the sum over the weights that read it, or that make it where nothing does.
#include <algorithm>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Hessian {
 public:
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static Result<Hessian> create(tn_ctx*, const Options&) { return Hessian{}; }
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
        double change = double{member->gradient[at]} * member->data[at];
        scores[channel] += 0.5 * change * change;
      });
    }
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(hessian,
                 tenon::pruner::Hessian,
                 "pruner.importance.hessian",
                 "half the Hessian's diagonal times squared weights; needs data with labels",
                 "{}")

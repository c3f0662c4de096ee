// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.batch_norm": the size of the factor by which batch normalization scales a
// channel (Liu et al., "Learning efficient convolutional networks through network slimming", ICCV
// 2017), the mean of them where a channel passes several. Normalization must not be folded yet.
#include <cmath>
#include <vector>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class BatchNorm {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<BatchNorm> create(tn_ctx*, const Options&) { return BatchNorm{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    std::vector<int64_t> factors(scores.size());
    tn_str latest{};
    for (const tn_group_member* member : members_of(group)) {
      if (member->kind != TN_MEMBER_VECTOR || view(member->op) != "BatchNormalization") continue;
      // Members of a node come in the order of its inputs: the scale is the first of them.
      if (view(member->node) == view(latest)) continue;
      latest = member->node;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += std::fabs(double{member->data[at]});
        ++factors[channel];
      });
    }
    for (size_t c = 0; c < scores.size(); ++c) {
      if (factors[c] == 0)
        return invalid(cat("no BatchNormalization scales channel ", c, " of ", view(group.name),
                           ": leave it out by the option skip, or prune before folding"));
      scores[c] /= static_cast<double>(factors[c]);
    }
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(batch_norm,
                 tenon::pruner::BatchNorm,
                 "pruner.importance.batch_norm",
                 "the size of the factors of batch normalization",
                 "{}")

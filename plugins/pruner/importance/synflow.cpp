// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.synflow": how much of all that flows through a network of the weights' sizes
// passes through a weight: |w| times the derivative of the sum of outputs, for inputs of ones
// (Tanaka et al., "Pruning neural networks without any data", NeurIPS 2020, algorithm 1). It needs
// no data. Large layers have small scores, so that one shot over all layers empties them: prune by
// the option rounds (the paper has 100).
#include <cmath>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Synflow {
 public:
  static constexpr uint32_t kNeeds = kImportanceFlow;
  static Result<Synflow> create(tn_ctx*, const Options&) { return Synflow{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    for (const tn_group_member* member : members_of(group)) {
      if (member->kind != TN_MEMBER_READS && member->kind != TN_MEMBER_MAKES) continue;
      if (!member->gradient) return invalid(cat("no flow by ", view(member->value), " was given"));
      bool overflows = false;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        overflows = overflows || !std::isfinite(member->gradient[at]);
        scores[channel] += std::abs(double{member->gradient[at]} * member->data[at]);
      });
      if (overflows)
        return unsupported(cat("the flow by ", view(member->value),
                               " overflows float32: use importance l1, or snip with data"));
    }
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(synflow,
                 tenon::pruner::Synflow,
                 "pruner.importance.synflow",
                 "flow through a network of absolute weights, before training; needs no data",
                 "{}")

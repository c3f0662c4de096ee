// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.apoz": the share of a channel's values that are not zero, 1 minus the average
// percentage of zeros (Hu et al., "Network trimming", 2016, equation 1): behind a Relu what is
// seldom there. Values are those that following layers read, the mean over them.
#include <algorithm>
#include <vector>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Apoz {
 public:
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_ACTIVATIONS;
  static Result<Apoz> create(tn_ctx*, const Options&) { return Apoz{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    auto all = members_of(group);
    auto has = [&](uint32_t kind) {
      return std::any_of(all.begin(), all.end(),
                         [&](const tn_group_member* one) { return one->kind == kind; });
    };
    if (!has(TN_MEMBER_READS))
      return unsupported(cat(view(group.name),
                             ": nothing reads its channels: single weights have "
                             "no zeros of their own to count, use wanda"));
    if (!has(TN_MEMBER_ACTIVATION))
      return invalid(cat("no activations of ", view(group.name), " were given"));
    std::vector<double> numbers(scores.size());
    for (const tn_group_member* member : all) {
      if (member->kind != TN_MEMBER_ACTIVATION) continue;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        numbers[channel] += 1;
        scores[channel] += member->data[at] != 0 ? 1 : 0;
      });
    }
    for (size_t c = 0; c < scores.size(); ++c)
      scores[c] /= std::max(numbers[c], 1.0);
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(apoz,
                 tenon::pruner::Apoz,
                 "pruner.importance.apoz",
                 "share of a channel's values that are not zero; needs data",
                 "{}")

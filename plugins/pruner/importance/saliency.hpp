// SPDX-License-Identifier: Apache-2.0
#pragma once
// What scores by gradients share: gradient times weight, the change of the loss to first order when
// a weight goes, and which weights of a channel it is summed over.

#include <algorithm>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {

// Those that read a channel, or that make it where nothing does; or both.
enum class Over { kReadersOrMakers, kAll };

// Change: static constexpr Over kOver, static constexpr uint32_t kNeeds, which says what stands in
// the place of the gradient, static double of(double change), summed over a channel, and
// total(double sum).
template <class Change>
class Saliency {
 public:
  static constexpr uint32_t kNeeds = Change::kNeeds;
  static Result<Saliency> create(tn_ctx*, const Options&) { return Saliency{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    auto all = members_of(group);
    bool read = std::any_of(all.begin(), all.end(), reads);
    for (const tn_group_member* member : all) {
      bool makes = member->kind == TN_MEMBER_MAKES;
      bool serves = Change::kOver == Over::kAll || !read;
      if (!reads(member) && !(makes && serves)) continue;
      if (!member->gradient)
        return invalid(cat("no gradient of ", view(member->value), " was given"));
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        scores[channel] += Change::of(double{member->gradient[at]} * member->data[at]);
      });
    }
    for (double& score : scores)
      score = Change::total(score);
    return {};
  }

 private:
  static bool reads(const tn_group_member* member) { return member->kind == TN_MEMBER_READS; }
};

}  // namespace tenon::pruner

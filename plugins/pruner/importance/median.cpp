// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.median": how far a filter lies from all others of its group, summed (He et
// al., "Filter pruning via geometric median", CVPR 2019, equation 7): what is near to the geometric
// median of all can be replaced by them, whatever its size. A filter is what makes a channel, in
// all layers that make it. Distances of all pairs are taken, n^2 of n channels.
#include <cmath>
#include <vector>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Median {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<Median> create(tn_ctx*, const Options&) { return Median{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    std::vector<std::vector<float>> filters(scores.size());
    for (const tn_group_member* member : members_of(group)) {
      if (member->kind != TN_MEMBER_MAKES) continue;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        filters[channel].push_back(member->data[at]);
      });
    }
    const size_t size = filters.empty() ? 0 : filters[0].size();
    for (const std::vector<float>& one : filters)
      if (one.size() != size)
        return unsupported(cat("channels of ", view(group.name), " have filters of ", size, " and ",
                               one.size(), " numbers, which have no distance"));
    if (size < 2)
      return unsupported(cat(view(group.name), ": expected filters of several numbers, got ", size,
                             ": single weights have no median that stands for them, use l1"));
    for (size_t a = 0; a < filters.size(); ++a)
      for (size_t b = a + 1; b < filters.size(); ++b) {
        const double apart = distance(filters[a], filters[b]);
        scores[a] += apart;
        scores[b] += apart;
      }
    return {};
  }

 private:
  static double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double off = double{a[i]} - b[i];
      squares += off * off;
    }
    return std::sqrt(squares);
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(median,
                 tenon::pruner::Median,
                 "pruner.importance.median",
                 "how far a filter lies from all others of its group: near ones can be replaced",
                 "{}")

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.wanda": the size of a weight times the norm of what it is multiplied with (Sun
// et al., "A simple and effective pruning approach for large language models", ICLR 2024, eq. 1). A
// channel is worth the sum over the weights that read it. Where none does, as of queries, which
// meet keys, and of results that nothing uses, it is worth the weights that make it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Wanda {
 public:
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_ACTIVATIONS;
  static Result<Wanda> create(tn_ctx*, const Options&) { return Wanda{}; }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    auto all = members_of(group);
    auto has = [&](uint32_t kind) {
      return std::any_of(all.begin(), all.end(),
                         [&](const tn_group_member* one) { return one->kind == kind; });
    };
    const bool is_read = has(TN_MEMBER_READS), is_seen = has(TN_MEMBER_ACTIVATION);
    if (is_read && !is_seen)
      return invalid(cat("no activations of ", view(group.name), " were given"));
    const uint32_t weights = is_read ? TN_MEMBER_READS : TN_MEMBER_MAKES;
    std::vector<double> squares(scores.size());
    for (const tn_group_member* member : all) {
      bool is_weight = member->kind == weights;
      if (!is_weight && member->kind != TN_MEMBER_ACTIVATION) continue;
      for_each_element(*member, [&](size_t channel, uint64_t at) {
        double x = member->data[at];
        (is_weight ? scores : squares)[channel] += is_weight ? std::fabs(x) : x * x;
      });
    }
    for (size_t c = 0; is_seen && c < scores.size(); ++c)
      scores[c] *= std::sqrt(squares[c]);
    return {};
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(wanda,
                 tenon::pruner::Wanda,
                 "pruner.importance.wanda",
                 "size of a weight times the norm of what it multiplies; needs data",
                 "{}")

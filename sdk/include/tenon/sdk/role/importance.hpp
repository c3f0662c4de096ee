// SPDX-License-Identifier: Apache-2.0
#pragma once
// An importance is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   Status score(const tn_channel_group&, std::span<double> scores);  // zeroed, one per channel
//   static constexpr uint32_t kNeeds = 0;      // TN_IMPORTANCE_*, kImportanceEffects,
//   kImportanceFlow

#include <algorithm>
#include <span>

#include "tenon/role/importance.h"

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

// Of channels, not of single weights: `data` holds by how much the loss of one batch rises when a
// channel goes after others, in random orders; outer holds the orders. Requested by kNeeds.
inline constexpr uint32_t kMemberEffect = 4, kImportanceEffects = 4;
// Gradients of the flow in the place of those of a loss: of the sum of the first output of the
// network of absolute weights for inputs of ones. No data is needed.
inline constexpr uint32_t kImportanceFlow = 8;
// In the place of gradients g of a loss with the Hessian H, weights w and the mean gradient m over
// all batches: g - H w / 2, so that times w it is the change to second order when all go; H m.
inline constexpr uint32_t kImportanceSecondOrder = 16, kImportanceGradientFlow = 32;

// The members of a group, whatever their number.
inline std::span<const tn_group_member* const> members_of(const tn_channel_group& group) {
  return {group.members, static_cast<size_t>(group.n_members)};
}

// use(channel, element) for each element that belongs to a channel, in the order of memory.
template <class Use>
void for_each_element(const tn_group_member& member, Use&& use) {
  uint64_t at = 0;
  for (uint64_t o = 0; o < member.outer; ++o) {
    for (uint64_t e = 0; e < member.extent; ++e, at += member.inner) {
      int64_t channel = member.channel ? member.channel[e] : static_cast<int64_t>(e);
      if (channel < 0) continue;
      for (uint64_t i = 0; i < member.inner; ++i)
        use(static_cast<size_t>(channel), at + i);
    }
  }
}

template <class T>
struct ImportanceRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.importance/1";
  static const tn_importance* table() {
    static const tn_importance table{sizeof table, 1, needs, score};
    return &table;
  }
  static tn_status* needs(void*, uint32_t* out) {
    *out = T::kNeeds;
    return nullptr;
  }
  static tn_status* score(void* self, const tn_channel_group* given, double* out) {
    return guard([&] {
      Sized<tn_channel_group> group(given);
      std::span<double> scores(out, static_cast<size_t>(group->n_channels));
      std::fill(scores.begin(), scores.end(), 0.0);
      return object_of<T>(self).score(*group, scores);
    });
  }
};

}  // namespace tenon

#define TENON_IMPORTANCE(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::ImportanceRole<Class>, "tenon.importance/1", id, summary, schema, 0)

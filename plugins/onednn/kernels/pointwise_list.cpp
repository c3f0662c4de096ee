// SPDX-License-Identifier: Apache-2.0
#include "pointwise_list.h"

#include <algorithm>

namespace tenon::onednn::kernels {

// The members lie one behind the other on a line, each as long as its bytes of traffic; a piece of
// the line runs the units that begin in it.
void PointwiseList::run(const Context& context, void* const* pointers) const {
  int64_t length = 0;
  for (const Member& member : members_) {
    const PointwisePlan::Work work = member.plan->work(context);
    length += work.units * work.unit_bytes;
  }
  if (length <= kGrainBytes) return run_alone(context, pointers);
  parallel_for(context.parallel, length, kGrainBytes, [&](int64_t lo, int64_t hi) {
    void* const* own = pointers;
    for (const Member& member : members_) {
      const PointwisePlan::Work work = member.plan->work(context);
      auto units_before = [&](int64_t at) {
        return std::clamp<int64_t>((at + work.unit_bytes - 1) / work.unit_bytes, 0, work.units);
      };
      const int64_t first = units_before(lo);
      const int64_t last = units_before(hi);
      if (first < last) {
        member.plan->run_units(context, {own, member.n_sources},
                               {own + member.n_sources, member.n_targets}, first, last);
      }
      own += member.n_sources + member.n_targets;
      lo -= work.units * work.unit_bytes;
      hi -= work.units * work.unit_bytes;
    }
  });
}

// One after the other on this thread.
void PointwiseList::run_alone(const Context& context, void* const* pointers) const {
  const Context alone{context.table, {}};
  for (const Member& member : members_) {
    void* const* targets = pointers + member.n_sources;
    member.plan->run(alone, {pointers, member.n_sources}, {targets, member.n_targets});
    pointers = targets + member.n_targets;
  }
}

}  // namespace tenon::onednn::kernels

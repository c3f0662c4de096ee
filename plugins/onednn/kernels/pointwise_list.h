// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise groups that do not need each other, run as one: all their elements are cut between the
// threads at once, so that many small tensors cost no more than a large one. What updates the
// parameters of a network is such a list.

#include <memory>
#include <vector>

#include "pointwise.h"

namespace tenon::onednn::kernels {

class PointwiseList {
 public:
  struct Member {
    std::shared_ptr<const PointwisePlan> plan;
    size_t n_sources;
    size_t n_targets;
  };
  void add(Member member) { members_.push_back(std::move(member)); }
  // pointers: of each member its sources, then its targets. A run allocates nothing.
  void run(const Context& context, void* const* pointers) const;

 private:
  void run_alone(const Context& context, void* const* pointers) const;

  std::vector<Member> members_;
};

}  // namespace tenon::onednn::kernels

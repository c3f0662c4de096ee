// SPDX-License-Identifier: Apache-2.0
#include "join_steps.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/pointwise_list.h"

namespace tenon::onednn {
namespace {

// What joined steps make lies in memory at once; so much more of it is allowed.
constexpr int64_t kMostBytes = int64_t{256} << 10;

// Steps that are to become one.
class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan) {}

  bool is_empty() const { return steps_.empty(); }
  bool takes(const Step& step) const {
    if (!step.pointwise) return false;
    if (!steps_.empty() && steps_[0].is_invariant != step.is_invariant) return false;
    for (size_t i = 0; i < step.places.size(); ++i) {
      int buffer = step.places[i].buffer;
      bool is_written = i >= step.n_sources;
      if (written_.count(buffer) > 0 || (is_written && read_.count(buffer) > 0)) return false;
    }
    return steps_.empty() || new_bytes_ + new_bytes(step) <= kMostBytes;
  }

  void add(Step step) {
    new_bytes_ += new_bytes(step);
    for (size_t i = 0; i < step.places.size(); ++i)
      (i < step.n_sources ? read_ : written_).insert(step.places[i].buffer);
    steps_.push_back(std::move(step));
  }

  Step joined() {
    if (steps_.size() == 1) return std::move(steps_[0]);
    Step whole = std::move(steps_[0]);
    auto list = std::make_shared<kernels::PointwiseList>();
    list->add(member(whole));
    for (size_t i = 1; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      list->add(member(step));
      whole.flops += step.flops;
      whole.bytes += step.bytes;
      whole.places.insert(whole.places.end(), step.places.begin(), step.places.end());
    }
    whole.name += " and " + std::to_string(steps_.size() - 1) + " more";
    whole.kernel = "tenon:pointwise list";
    whole.pointwise = nullptr;
    whole.kernel_function = [list](const kernels::Context& context,
                                   void* const* pointers) -> const char* {
      list->run(context, pointers);
      return nullptr;
    };
    return whole;
  }

 private:
  // Of results that no operand made room for.
  int64_t new_bytes(const Step& step) const {
    int64_t bytes = 0;
    for (size_t i = step.n_sources; i < step.places.size(); ++i) {
      const Buffer& buffer = plan_.buffers[static_cast<size_t>(step.places[i].buffer)];
      auto sources_end = step.places.begin() + static_cast<std::ptrdiff_t>(step.n_sources);
      bool is_reused = std::any_of(step.places.begin(), sources_end, [&](const Place& place) {
        return place.buffer == step.places[i].buffer;
      });
      if (buffer.kind == Buffer::Kind::kArena && !is_reused) bytes += buffer.bytes;
    }
    return bytes;
  }

  static kernels::PointwiseList::Member member(const Step& step) {
    return {step.pointwise, step.n_sources, step.places.size() - step.n_sources};
  }

  const Plan& plan_;
  std::vector<Step> steps_;
  std::set<int> read_, written_;  // buffers
  int64_t new_bytes_ = 0;
};

}  // namespace

void join_steps(Plan& plan) {
  std::vector<Step> before = std::exchange(plan.steps, {});
  size_t first_commit = SIZE_MAX;
  for (size_t i = 0; i < before.size();) {
    Run run(plan);
    size_t end = i;
    while (end < before.size() && run.takes(before[end]))
      run.add(std::move(before[end++]));
    const size_t last = end > i ? end - 1 : i;
    bool commits = plan.first_commit <= last;
    if (first_commit == SIZE_MAX && commits) first_commit = plan.steps.size();
    if (run.is_empty()) {
      plan.steps.push_back(std::move(before[i++]));
      continue;
    }
    plan.steps.push_back(run.joined());
    i = end;
  }
  plan.first_commit = first_commit;
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// Kernels of one text that need nothing of each other become one launch: an optimizer's updates,
// the weights' casts. Each of those alone takes longer to start than to run.
#include <algorithm>
#include <cstring>
#include <map>

#include "codegen/pointwise_text.hpp"
#include "lowering.hpp"

namespace tenon::cuda {
namespace {

constexpr size_t kJoinedBytes = 4000;  // of arguments, as any device takes
constexpr uint64_t kBlocksOfJob = 1u << 12;

bool meet(const std::vector<int>& some, const std::vector<int>& others) {
  return std::any_of(some.begin(), some.end(), [&](int buffer) {
    return std::find(others.begin(), others.end(), buffer) != others.end();
  });
}

const Launch* generated(const Step& step) {
  const Launch* launch = std::get_if<Launch>(&step.work);
  return launch && !launch->source.empty() ? launch : nullptr;
}

// Steps that run together, in the place of the first.
struct Joint {
  std::vector<Step> jobs;
};

class Joiner {
 public:
  explicit Joiner(Plan& plan) : plan_(plan) {}

  void join() {
    for (Step& step : plan_.steps) {
      const Launch* launch = generated(step);
      if (!launch || !keeps_memory(step)) {
        made_.push_back({{std::move(step)}});
        continue;
      }
      auto open = open_.find(launch->symbol);
      if (open == open_.end() || !fits(open->second, step, *launch)) {
        open_[launch->symbol] = made_.size();
        made_.push_back({{std::move(step)}});
      } else {
        made_[open->second].jobs.push_back(std::move(step));
      }
    }
    plan_.steps.clear();
    for (Joint& joint : made_)
      plan_.steps.push_back(joint.jobs.size() == 1 ? std::move(joint.jobs[0]) : joined(joint));
  }

 private:
  bool is_own(int buffer) const {
    return plan_.buffers[static_cast<size_t>(buffer)].storage == Storage::kArena;
  }
  // Run earlier, it makes no memory of the arena live for longer: weights are needed by their
  // gradients at the end, so their casts are kept anyway.
  bool keeps_memory(const Step& step) const {
    auto is_arena = [&](int buffer) { return is_own(buffer); };
    return std::none_of(step.reads.begin(), step.reads.end(), is_arena) ||
           std::none_of(step.writes.begin(), step.writes.end(), is_arena);
  }

  // Nothing from the joint on makes what the step reads, or touches what it writes.
  bool fits(size_t joint, const Step& step, const Launch& launch) const {
    size_t jobs = made_[joint].jobs.size() + 1;
    if (8 * (jobs + 1) + jobs * launch.arguments.size() > kJoinedBytes) return false;
    for (size_t i = joint; i < made_.size(); ++i) {
      for (const Step& other : made_[i].jobs) {
        if (meet(step.reads, other.writes) || meet(step.writes, other.writes) ||
            meet(step.writes, other.reads))
          return false;
      }
    }
    return true;
  }

  static void add_once(std::vector<int>* list, const std::vector<int>& more) {
    for (int buffer : more)
      if (std::find(list->begin(), list->end(), buffer) == list->end()) list->push_back(buffer);
  }

  static Step joined(const Joint& joint) {
    size_t jobs = joint.jobs.size();
    const Step& first = joint.jobs[0];
    const Launch& alone = *generated(first);
    size_t bytes = alone.arguments.size(), head = sizeof(uint64_t) * (jobs + 1);
    PointwiseText text = joined_text(alone.symbol, alone.source, bytes / sizeof(uint64_t), jobs);
    Step step{
        cat(first.name, " and ", jobs - 1, " more"), first.op, text.symbol, Launch(), {}, {}, 0, 0};
    Launch launch;
    launch.symbol = text.symbol;
    launch.source = std::move(text.source);
    launch.block = alone.block;
    launch.is_elementwise = true;
    launch.arguments.resize(head + jobs * bytes);
    uint64_t blocks = 0;
    for (size_t i = 0; i < jobs; ++i) {
      const Step& job = joint.jobs[i];
      const Launch& own = *generated(job);
      size_t at = head + i * bytes;
      std::memcpy(launch.arguments.data() + i * sizeof blocks, &blocks, sizeof blocks);
      std::memcpy(launch.arguments.data() + at, own.arguments.data(), bytes);
      blocks += std::min<uint64_t>(own.grid, kBlocksOfJob);
      for (Patch patch : own.patches) {
        patch.at += static_cast<uint32_t>(at);
        launch.patches.push_back(patch);
      }
      add_once(&step.reads, job.reads);
      add_once(&step.writes, job.writes);
      step.flops += job.flops;
      step.bytes += job.bytes;
    }
    std::memcpy(launch.arguments.data() + jobs * sizeof blocks, &blocks, sizeof blocks);
    launch.grid = static_cast<uint32_t>(std::min<uint64_t>(blocks, 1u << 16));
    step.work = std::move(launch);
    return step;
  }

  Plan& plan_;
  std::vector<Joint> made_;
  std::map<std::string, size_t> open_;  // by symbol: the last joint
};

}  // namespace

void join_launches(Plan& plan) {
  Joiner(plan).join();
}

}  // namespace tenon::cuda

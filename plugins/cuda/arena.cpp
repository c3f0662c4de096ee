// SPDX-License-Identifier: Apache-2.0
// Offsets in one block for all buffers that live only during a run: the largest first, each at the
// lowest offset where nothing lies that lives at the same time (greedy by size, Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020).
#include <algorithm>
#include <limits>

#include "plan.hpp"

namespace tenon::cuda {
namespace {

struct Life {
  int buffer;
  size_t first = std::numeric_limits<size_t>::max(), last = 0;
  uint64_t bytes = 0;
};

std::vector<Life> lives_of(const Plan& plan) {
  std::vector<Life> lives(plan.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i)
    lives[i].buffer = static_cast<int>(i);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const std::vector<int>* list : {&plan.steps[s].reads, &plan.steps[s].writes}) {
      for (int buffer : *list) {
        Life& life = lives[static_cast<size_t>(buffer)];
        life.first = std::min(life.first, s);
        life.last = std::max(life.last, s);
      }
    }
  }
  std::vector<Life> out;
  for (Life& life : lives) {
    const Buffer& buffer = plan.buffers[static_cast<size_t>(life.buffer)];
    if (buffer.place != Place::kArena || life.first > life.last) continue;
    life.bytes = (buffer.bytes + kOwnAlign - 1) / kOwnAlign * kOwnAlign;
    out.push_back(life);
  }
  return out;
}

}  // namespace

void lay_out_arena(Plan& plan) {
  std::vector<Life> lives = lives_of(plan);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    uint64_t live = 0;
    for (const Life& life : lives)
      live += life.first <= s && s <= life.last ? life.bytes : 0;
    if (live <= plan.arena_lower_bound) continue;
    plan.arena_lower_bound = live;
    plan.peak_step = plan.steps[s].name;
  }
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> placed;  // by offset
  for (const Life& life : lives) {
    uint64_t offset = 0;
    for (const Life& other : placed) {
      if (other.last < life.first || life.last < other.first) continue;
      uint64_t at = plan.buffers[static_cast<size_t>(other.buffer)].offset;
      if (offset + life.bytes <= at) break;
      offset = std::max(offset, at + other.bytes);
    }
    plan.buffers[static_cast<size_t>(life.buffer)].offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + life.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](uint64_t value, const Life& other) {
                                     return value <
                                            plan.buffers[static_cast<size_t>(other.buffer)].offset;
                                   }),
                  life);
  }
}

}  // namespace tenon::cuda

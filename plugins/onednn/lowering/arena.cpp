// SPDX-License-Identifier: Apache-2.0
// One block of memory for all intermediates and scratchpads: a buffer's life is the range of steps
// that touch it, and buffers whose lives overlap must not overlap in memory. Greedy by size
// (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020,
// section 5.2): the largest buffer first, each in the smallest gap that holds it.

#include <algorithm>
#include <cstdint>

#include "plan.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kAlign = 64;

struct Life {
  int buffer = 0;
  int64_t bytes = 0;
  int first = INT32_MAX;
  int last = -1;
};

std::vector<Life> lives(const Plan& plan) {
  std::vector<Life> all(plan.buffers.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].buffer = static_cast<int>(i);
    all[i].bytes = (plan.buffers[i].bytes + kAlign - 1) / kAlign * kAlign;
  }
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    auto touch = [&](const Place& place) {
      if (place.buffer == kNone) return;
      Life& life = all[place.buffer];
      life.first = std::min(life.first, static_cast<int>(step));
      life.last = std::max(life.last, static_cast<int>(step));
    };
    for (const Argument& argument : plan.steps[step].arguments)
      touch(argument.place);
    for (const Place& place : plan.steps[step].places)
      touch(place);
  }
  std::erase_if(all, [&](const Life& life) {
    return plan.buffers[life.buffer].kind != Buffer::Kind::kArena || life.last < 0 ||
           life.bytes == 0;
  });
  return all;
}

int64_t most_alive(const std::vector<Life>& all, size_t n_steps) {
  std::vector<int64_t> change(n_steps + 1, 0);
  for (const Life& life : all) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }
  int64_t alive = 0;
  int64_t most = 0;
  for (int64_t delta : change)
    most = std::max(most, alive += delta);
  return most;
}

int64_t smallest_gap(const Plan& plan, const std::vector<Life>& placed, const Life& life) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // begin, end; of those alive at the same time
  for (const Life& other : placed) {
    if (other.last < life.first || other.first > life.last) continue;
    int64_t begin = plan.buffers[other.buffer].arena_offset;
    taken.emplace_back(begin, begin + other.bytes);
  }
  std::sort(taken.begin(), taken.end());
  int64_t best = -1;
  int64_t best_size = INT64_MAX;
  int64_t end = 0;
  for (const auto& [begin, stop] : taken) {
    int64_t gap = begin - end;
    if (gap >= life.bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, stop);
  }
  return best >= 0 ? best : end;
}

}  // namespace

ArenaSize lay_out_arena(Plan& plan) {
  std::vector<Life> all = lives(plan);
  ArenaSize size;
  size.lower_bound = most_alive(all, plan.steps.size());
  std::sort(all.begin(), all.end(), [](const Life& a, const Life& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  std::vector<Life> placed;
  for (const Life& life : all) {
    int64_t offset = smallest_gap(plan, placed, life);
    plan.buffers[life.buffer].arena_offset = offset;
    size.bytes = std::max(size.bytes, offset + life.bytes);
    placed.push_back(life);
  }
  return size;
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// New states that are written where the old ones were, so that an optimizer's update needs no copy.
#include <algorithm>

#include "lowering.hpp"

namespace tenon::cuda {
namespace {

bool has(const std::vector<int>& list, int buffer) {
  return std::find(list.begin(), list.end(), buffer) != list.end();
}

// The only step that writes the buffer, or -1.
int writer_of(const Plan& plan, int buffer) {
  int writer = -1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!has(plan.steps[i].writes, buffer)) continue;
    if (writer >= 0) return -1;
    writer = static_cast<int>(i);
  }
  return writer;
}

struct Renamed {
  int from, to;

  void rename(int& buffer) const {
    if (buffer == from) buffer = to;
  }
  void operator()(Launch& launch) const {
    for (Patch& patch : launch.patches)
      rename(patch.buffer);
  }
  void operator()(Product& p) const {
    for (int* one : {&p.a, &p.b, &p.bias, &p.c, &p.out})
      rename(*one);
  }
  void operator()(Convolution& c) const {
    for (int* one : {&c.x, &c.w, &c.bias, &c.z, &c.y})
      rename(*one);
  }
  void operator()(Move& move) const {
    rename(move.from);
    rename(move.to);
  }
};

}  // namespace

bool Lowering::updates_in_place(int from, int to) const {
  const Buffer& made = plan_.buffers[static_cast<size_t>(from)];
  if (made.storage != Storage::kArena) return false;
  for (const auto& other : graph_.states) {
    // The old value, or a view of it, is wanted.
    if (layouts_[static_cast<size_t>(other.second)].plain == to) return false;
  }
  int writer = writer_of(plan_, from);
  if (writer < 0) return false;
  const Launch* launch = std::get_if<Launch>(&plan_.steps[static_cast<size_t>(writer)].work);
  if (!launch || !launch->is_elementwise) return false;
  return std::none_of(plan_.steps.begin() + writer + 1, plan_.steps.end(), [&](const Step& step) {
    return has(step.reads, to) || has(step.writes, to);
  });
}

void Lowering::rename_buffer(int from, int to) {
  Renamed renamed{from, to};
  for (Step& step : plan_.steps) {
    std::visit(renamed, step.work);
    std::replace(step.reads.begin(), step.reads.end(), from, to);
    std::replace(step.writes.begin(), step.writes.end(), from, to);
  }
  for (Layouts& layouts : layouts_)
    renamed.rename(layouts.plain);
}

}  // namespace tenon::cuda

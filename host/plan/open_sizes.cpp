// SPDX-License-Identifier: Apache-2.0
#include "plan/open_sizes.hpp"

#include <algorithm>

#include "sizes/alike.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

// The one with the sizes left open in which the other differs; nothing where more differs.
std::optional<Shapes> opened(const Shapes& one, const Shapes& other) {
  Shapes out = one;
  for (size_t i = 0; i < one.size(); ++i) {
    const bool is_list = one[i][0] == kAnyShape;
    if (is_list || one[i].size() != other[i].size() || one[i][0] != other[i][0]) return {};
    for (size_t d = 1; d < one[i].size(); ++d)
      if (one[i][d] != other[i][d]) out[i][d] = kOpenSize;
  }
  return out;
}

// Whether two shapes differ in each of the open sizes: what they agree on depends on none.
bool differ_throughout(const Shapes& open, const Shapes& a, const Shapes& b) {
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t d = 1; d < open[i].size(); ++d)
      if (open[i][d] == kOpenSize && a[i][d] == b[i][d]) return false;
  return true;
}

bool may_open(const tn_plan& plan) {
  return plan.shares_passes && plan.assumptions.opens_sizes && !plan.preferred().last_resort &&
         std::ranges::none_of(plan.backends, [](const auto& use) { return use->own_memory; });
}

}  // namespace

std::optional<OpenSizes> open_sizes_for(tn_plan* plan, Inputs in) {
  std::lock_guard lock(plan->mutex);
  if (!may_open(*plan)) return {};
  const Shapes shapes = shapes_of(in);
  std::vector<std::pair<Shapes, CompiledRef>> before;
  for (const CompiledRef& one : plan->cache) {
    std::optional<Shapes> open;
    if (!one->is_open) open = opened(shapes, one->key);
    if (!open || std::ranges::count(plan->never_open, *open)) continue;
    if (!plan->symbols->agree(in)) return {};
    for (auto& [same, other] : before)
      if (same == *open && differ_throughout(*open, other->key, one->key))
        return OpenSizes{*open, {other, one}};
    before.emplace_back(*open, one);
  }
  return {};
}

bool pays_open(const std::vector<CompiledPartition>& partitions) {
  size_t n_late = 0, n_all = 0;
  std::vector<const tn_graph*> late;
  for (const CompiledPartition& one : partitions) {
    n_all += one.partition.nodes.size();
    if (!one.partition.is_late()) continue;
    const tn_graph* graph = one.graph.get();
    if (std::ranges::any_of(late, [&](auto* other) { return are_alike(*other, *graph); })) continue;
    late.push_back(graph);
    n_late += one.partition.nodes.size();
  }
  return n_late > 0 && 2 * n_late <= n_all;
}

}  // namespace tenon::host

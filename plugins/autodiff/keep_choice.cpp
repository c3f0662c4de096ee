// SPDX-License-Identifier: Apache-2.0
#include "keep_choice.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

namespace tenon::autodiff {
namespace {

constexpr int64_t kNever = int64_t{1} << 60;  // the capacity of what no cut goes through

// Maximum flow by blocking flows (Dinic 1970).
class Flow {
 public:
  explicit Flow(size_t n_vertices) : edges_of_(n_vertices) {}

  void add(size_t from, size_t to, int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }
  // Which vertices are on the source's side of the least cut that is nearest to it.
  std::vector<bool> cut(size_t source, size_t sink) {
    while (measure(source, sink)) {
      next_.assign(edges_of_.size(), 0);
      while (push(source, sink)) {
      }
    }
    std::vector<bool> out(edges_of_.size());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = level_[i] >= 0;
    return out;
  }

 private:
  struct Edge {
    size_t to;
    int64_t left;
  };

  bool measure(size_t source, size_t sink) {
    level_.assign(edges_of_.size(), -1);
    level_[source] = 0;
    std::queue<size_t> open({source});
    while (!open.empty()) {
      size_t at = open.front();
      open.pop();
      for (size_t e : edges_of_[at]) {
        if (edges_[e].left == 0 || level_[edges_[e].to] >= 0) continue;
        level_[edges_[e].to] = level_[at] + 1;
        open.push(edges_[e].to);
      }
    }
    return level_[sink] >= 0;
  }

  // One more path from source to sink, without recursion: graphs are deep.
  bool push(size_t source, size_t sink) {
    std::vector<size_t> path;
    size_t at = source;
    while (at != sink) {
      std::vector<size_t>& edges = edges_of_[at];
      while (next_[at] < edges.size() && !leads_on(at, edges_[edges[next_[at]]]))
        ++next_[at];
      if (next_[at] < edges.size()) {
        path.push_back(edges[next_[at]]);
        at = edges_[path.back()].to;
      } else if (path.empty()) {
        return false;
      } else {
        at = edges_[path.back() ^ 1].to;
        path.pop_back();
        ++next_[at];
      }
    }
    int64_t most = kNever;
    for (size_t e : path)
      most = std::min(most, edges_[e].left);
    for (size_t e : path) {
      edges_[e].left -= most;
      edges_[e ^ 1].left += most;
    }
    return true;
  }
  bool leads_on(size_t at, const Edge& edge) const {
    return edge.left > 0 && level_[edge.to] == level_[at] + 1;
  }

  std::vector<Edge> edges_;  // each behind it its reverse
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace

// The sink's side is what is there in the backward pass. A node whose entry is there is computed
// again, which cuts its price; a value that is there while its node's entry is not is kept, which
// cuts its bytes; an entry that is there needs its inputs there.
KeepChoice choose_kept(const KeepProblem& problem, double price) {
  constexpr size_t kSource = 0, kSink = 1;
  const size_t n = problem.nodes.size(), first_value = 2 + n;
  Flow flow(first_value + problem.values.size());
  for (size_t i = 0; i < n; ++i) {
    const KeepNode& node = problem.nodes[i];
    double dear = std::min(price * node.cost, static_cast<double>(kNever));
    flow.add(kSource, 2 + i, node.is_fixed ? kNever : std::llround(dear));
    for (int output : node.outputs) {
      auto value = static_cast<size_t>(output);
      flow.add(2 + i, first_value + value,
               node.is_view ? kNever : std::max<int64_t>(problem.values[value].bytes, 1));
    }
    for (int input : node.inputs)
      flow.add(first_value + static_cast<size_t>(input), 2 + i, kNever);
  }
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (problem.values[v].is_read) flow.add(first_value + v, kSink, kNever);
  std::vector<bool> before = flow.cut(kSource, kSink);
  KeepChoice out;
  out.values.resize(problem.values.size());
  for (size_t i = 0; i < n; ++i) {
    if (!before[2 + i]) out.cost += problem.nodes[i].cost;
    for (int output : problem.nodes[i].outputs) {
      auto value = static_cast<size_t>(output);
      if (!before[2 + i] || before[first_value + value]) continue;
      out.values[value] = true;
      out.bytes += problem.values[value].bytes;
    }
  }
  return out;
}

std::vector<bool> fill_knapsack(const std::vector<int64_t>& sizes,
                                const std::vector<double>& worth,
                                int64_t capacity) {
  constexpr int64_t kSteps = 4096;
  std::vector<bool> out(sizes.size());
  if (capacity <= 0) return out;
  auto steps_of = [&](int64_t size) {
    return size > capacity ? kSteps + 1 : (size * kSteps + capacity - 1) / capacity;
  };
  std::vector<double> best(kSteps + 1);
  std::vector<std::vector<bool>> taken(sizes.size(), std::vector<bool>(kSteps + 1));
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t steps = steps_of(sizes[i]);
    for (int64_t left = kSteps; left >= steps; --left) {
      double with = best[static_cast<size_t>(left - steps)] + worth[i];
      if (with <= best[static_cast<size_t>(left)]) continue;
      best[static_cast<size_t>(left)] = with;
      taken[i][static_cast<size_t>(left)] = true;
    }
  }
  int64_t left = kSteps;
  for (size_t i = sizes.size(); i-- > 0;) {
    out[i] = taken[i][static_cast<size_t>(left)];
    if (out[i]) left -= steps_of(sizes[i]);
  }
  return out;
}

}  // namespace tenon::autodiff

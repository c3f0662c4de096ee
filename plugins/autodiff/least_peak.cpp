// SPDX-License-Identifier: Apache-2.0
#include "least_peak.hpp"

#include <algorithm>
#include <set>

namespace tenon::autodiff {
namespace {

constexpr size_t kEstimates = 8;  // that are rewritten
constexpr int kTrials = 96;       // rewritten graphs in all

class LeastPeak {
 public:
  LeastPeak(const tn_graph* graph, Sizes sizes) : graph_(graph), sizes_(sizes) {}

  Result<std::vector<int>> run() {
    TN_TRY(starts, estimates());
    for (const std::vector<int>& ends : starts)
      TN_CHECK(attempt(ends).status());
    bool improved = !best_.empty();
    while (improved && n_trials_ < kTrials) {
      TN_TRY(better, improve());
      improved = better;
    }
    // Where nothing takes less than the graph as it is, computing again gains nothing.
    return least_ < sizes_.peak({graph_}) ? best_ : std::vector<int>{};
  }

 private:
  // The best estimates; fills places_ with all positions where any candidate cuts.
  Result<std::vector<std::vector<int>>> estimates() {
    std::vector<std::vector<int>> out;
    TN_TRY(unused, on_copy(graph_, sizes_, [&](Recomputation& made) -> Status {
             std::vector<ForwardValue> values = made.forward_values();
             if (choose_cuts(values, made.n_forward()).ends.empty()) return {};
             out = best_cuts(values, made.n_forward(), kEstimates);
             std::set<int> places;
             for (const std::vector<int>& ends : candidate_cuts(values, made.n_forward()))
               places.insert(ends.begin(), ends.end());
             places_.assign(places.begin(), places.end());
             return {};
           }));
    (void)unused;
    return out;
  }

  // Whether these cuts are the best so far.
  Result<bool> attempt(std::vector<int> ends) {
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    if (ends.empty() || n_trials_ >= kTrials || !tried_.insert(ends).second) return false;
    ++n_trials_;
    TN_TRY(copy, on_copy(graph_, sizes_, [&](Recomputation& made) -> Status {
             made.cut(ends);
             return made.rewrite();
           }));
    int64_t peak = sizes_.peak(copy.view());
    if (peak >= least_) return false;
    least_ = peak;
    best_ = std::move(ends);
    return true;
  }

  Result<bool> improve() {
    for (std::vector<int>& ends : neighbours(best_)) {
      TN_TRY(better, attempt(std::move(ends)));
      if (better) return true;
    }
    return false;
  }

  std::vector<std::vector<int>> neighbours(const std::vector<int>& ends) const {
    std::vector<std::vector<int>> out;
    int before = -1;
    for (size_t i = 0; i < ends.size(); ++i) {
      auto at = std::lower_bound(places_.begin(), places_.end(), ends[i]);
      if (at != places_.begin()) out.push_back(replaced(ends, i, *(at - 1)));
      if (at + 1 < places_.end()) out.push_back(replaced(ends, i, *(at + 1)));
      auto from = std::upper_bound(places_.begin(), places_.end(), before);
      if (at - from > 1) {
        out.push_back(ends);
        out.back().push_back(*(from + (at - from) / 2));
      }
      out.push_back(ends);
      out.back().erase(out.back().begin() + static_cast<std::ptrdiff_t>(i));
      before = ends[i];
    }
    return out;
  }

  static std::vector<int> replaced(std::vector<int> ends, size_t i, int by) {
    ends[i] = by;
    return ends;
  }

  const tn_graph* graph_;
  Sizes sizes_;
  std::vector<int> places_, best_;
  std::set<std::vector<int>> tried_;
  int64_t least_ = INT64_MAX;
  int n_trials_ = 0;
};

}  // namespace

Result<std::vector<int>> least_peak_cuts(const tn_graph* graph, Sizes sizes) {
  return LeastPeak(graph, sizes).run();
}

}  // namespace tenon::autodiff

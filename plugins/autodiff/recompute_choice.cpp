// SPDX-License-Identifier: Apache-2.0
#include "recompute_choice.hpp"

#include <algorithm>

namespace tenon::autodiff {
namespace {

constexpr int kBudgets = 256;  // that are tried

class Choice {
 public:
  Choice(const std::vector<ForwardValue>& values, int n_nodes)
      : values_(values),
        n_(n_nodes),
        behind_(static_cast<size_t>(n_nodes) + 1),
        saved_(static_cast<size_t>(n_nodes)) {
    for (const ForwardValue& value : values) {
      // What is saved anyway costs least to keep.
      Crossing by{value.bytes, value.is_saved ? value.bytes : 0};
      behind_[static_cast<size_t>(value.made)].add(by, 1);
      behind_[static_cast<size_t>(value.last_use)].add(by, -1);
      if (value.is_saved) saved_[static_cast<size_t>(value.made)] += value.bytes;
    }
    for (size_t i = 1; i < behind_.size(); ++i)
      behind_[i].add(behind_[i - 1], 1);
    for (int64_t bytes : saved_)
      total_ += bytes;
  }

  Cuts best() const {
    Cuts best = measured({});
    for (std::vector<int>& ends : candidates()) {
      Cuts made = measured(std::move(ends));
      if (made.bytes() < best.bytes()) best = std::move(made);
    }
    return best;
  }

  std::vector<std::vector<int>> ranked(size_t count) const {
    std::vector<Cuts> all;
    for (std::vector<int>& ends : distinct())
      all.push_back(measured(std::move(ends)));
    std::stable_sort(all.begin(), all.end(),
                     [](const Cuts& a, const Cuts& b) { return a.bytes() < b.bytes(); });
    std::vector<std::vector<int>> out;
    for (size_t i = 0; i < std::min(count, all.size()); ++i)
      out.push_back(std::move(all[i].ends));
    return out;
  }

  // All candidates that cut anything, from few segments to many.
  std::vector<std::vector<int>> distinct() const {
    std::vector<std::vector<int>> out = candidates();
    std::erase_if(out, [](const std::vector<int>& ends) { return ends.empty(); });
    auto order = [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    std::sort(out.begin(), out.end(), order);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  std::vector<std::vector<int>> candidates() const {
    std::vector<std::vector<int>> out;
    for (int k = 2; k <= std::min(kBudgets, n_); ++k)
      out.push_back(ends_for((total_ + k - 1) / k));
    for (int k = 1; k < kBudgets; ++k)
      out.push_back(ends_for(total_ * k / kBudgets));
    return out;
  }

  struct Crossing {
    int64_t bytes = 0, saved = 0;
    void add(const Crossing& other, int64_t sign) {
      bytes += sign * other.bytes;
      saved += sign * other.saved;
    }
    bool is_no_worse_than(const Crossing& other) const {
      return bytes < other.bytes || (bytes == other.bytes && saved >= other.saved);
    }
  };

  // Segments of at most `budget` bytes and of half of it at least, each cut where least crosses.
  std::vector<int> ends_for(int64_t budget) const {
    std::vector<int> ends;
    int first = 0;
    while (first < n_) {
      int64_t bytes = 0;
      int best = -1, i = first;
      for (; i < n_; ++i) {
        bytes += saved_[static_cast<size_t>(i)];
        if (bytes > budget && best >= 0) break;
        bool is_less = best < 0 || behind_[static_cast<size_t>(i)].is_no_worse_than(
                                       behind_[static_cast<size_t>(best)]);
        if (2 * bytes >= budget && is_less) best = i;
      }
      if (i == n_ || best < 0) break;
      ends.push_back(best);
      first = best + 1;
    }
    return ends;
  }

  Cuts measured(std::vector<int> ends) const {
    Cuts out;
    std::vector<int64_t> inside(ends.size() + 1);
    for (const ForwardValue& value : values_) {
      auto segment = static_cast<size_t>(std::lower_bound(ends.begin(), ends.end(), value.made) -
                                         ends.begin());
      bool crosses = segment < ends.size() && value.last_use > ends[segment];
      if (crosses)
        out.kept += value.bytes;
      else if (value.is_saved)
        inside[segment] += value.bytes;
    }
    out.largest = *std::max_element(inside.begin(), inside.end());
    out.ends = std::move(ends);
    return out;
  }

  const std::vector<ForwardValue>& values_;
  int n_;
  std::vector<Crossing> behind_;  // alive behind each node for a later one
  std::vector<int64_t> saved_;    // made by each node for the backward pass
  int64_t total_ = 0;
};

}  // namespace

std::vector<std::vector<int>> candidate_cuts(const std::vector<ForwardValue>& values, int n_nodes) {
  return n_nodes == 0 ? std::vector<std::vector<int>>{} : Choice(values, n_nodes).distinct();
}

std::vector<std::vector<int>> best_cuts(const std::vector<ForwardValue>& values,
                                        int n_nodes,
                                        size_t count) {
  return n_nodes == 0 ? std::vector<std::vector<int>>{} : Choice(values, n_nodes).ranked(count);
}

Cuts choose_cuts(const std::vector<ForwardValue>& values, int n_nodes) {
  return n_nodes == 0 ? Cuts{} : Choice(values, n_nodes).best();
}

}  // namespace tenon::autodiff

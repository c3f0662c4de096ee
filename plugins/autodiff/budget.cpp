// SPDX-License-Identifier: Apache-2.0
#include "budget.hpp"

#include <algorithm>
#include <cmath>

#include "least_peak.hpp"

namespace tenon::autodiff {
namespace {

constexpr double kOperations = 25, kBytes = 8;  // in a ns
constexpr int kPrices = 16;                     // that are distinguished
constexpr size_t kCuts = 6;                     // that are tried
constexpr int kFills = 4;                       // knapsacks, each smaller than the one before

double estimated(Node node) {
  const tn_op* row = node.row();
  if (!row) return 0;
  double flops = 0, bytes = 0;
  Status failed = row->cost ? Status(row->cost(row->self, node.graph, node.id, &flops, &bytes))
                            : unsupported("no cost");
  if (!failed.ok()) {
    for (Value value : node.inputs())
      if (value) bytes += static_cast<double>(bytes_of(value));
    for (Value value : node.outputs())
      if (value) bytes += static_cast<double>(bytes_of(value));
  }
  return std::max(flops / kOperations, bytes / kBytes);
}

class Search {
 public:
  Search(const tn_graph* graph,
         int64_t budget,
         Sizes sizes,
         const std::map<std::string, double>& times)
      : graph_(graph), budget_(budget), sizes_(sizes), times_(times) {}

  Result<Chosen> run() {
    Chosen nothing;
    nothing.peak = least_ = sizes_.peak({graph_});
    if (nothing.peak <= budget_) return nothing;
    TN_TRY(cuts, cuts_to_try());
    std::optional<Chosen> best;
    for (const std::vector<int>& ends : cuts) {
      TN_TRY(found, within(ends));
      if (found && (!best || found->cost < best->cost)) best = std::move(found);
    }
    if (best) return std::move(*best);
    return Status(TN_OUT_OF_RANGE,
                  cat("option budget: expected at least ", least_, " bytes, what the plan that ",
                      "takes least needs, got ", budget_));
  }

 private:
  using Insides = std::vector<Recomputation::Inside>;

  Result<std::vector<std::vector<int>>> cuts_to_try() const {
    std::vector<std::vector<int>> out;
    TN_TRY(unused, on_copy(graph_, sizes_, [&](Recomputation& made) -> Status {
             std::vector<ForwardValue> values = made.forward_values();
             std::vector<std::vector<int>> all = candidate_cuts(values, made.n_forward());
             // From few segments to many.
             for (size_t i = 0; i < kCuts && !all.empty(); ++i)
               out.push_back(all[(all.size() - 1) * i / (kCuts - 1)]);
             return {};
           }));
    (void)unused;
    TN_TRY(least, least_peak_cuts(graph_, sizes_));
    if (!least.empty()) out.push_back(std::move(least));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // The segments of these cuts, and the prices between which their choices differ.
  Status look_at(const std::vector<int>& ends,
                 Insides& insides,
                 std::vector<double>& prices) const {
    TN_TRY(unused, on_copy(graph_, sizes_, [&](Recomputation& made) -> Status {
             made.cut(ends);
             insides = made.insides(node_costs(made.joint(), times_));
             return {};
           }));
    (void)unused;
    std::vector<double> ratios;
    for (const auto& inside : insides)
      for (const KeepNode& node : inside.problem.nodes)
        for (int output : node.outputs)
          if (node.cost > 0)
            ratios.push_back(
                static_cast<double>(inside.problem.values[static_cast<size_t>(output)].bytes) /
                node.cost);
    std::sort(ratios.begin(), ratios.end());
    prices = {0};  // nothing is kept that need not be
    for (int i = 0; i < kPrices && !ratios.empty(); ++i)
      prices.push_back(ratios[(ratios.size() - 1) * static_cast<size_t>(i) / (kPrices - 1)] * 1.01);
    // A node is kept that is dear alone; where chains are, all of one are paid for.
    prices.push_back(prices.back() * 100);
    return {};
  }

  static std::vector<KeepChoice> choices_at(const Insides& insides, double price) {
    std::vector<KeepChoice> out;
    for (const auto& inside : insides)
      out.push_back(choose_kept(inside.problem, price));
    return out;
  }

  // With the peak that it has.
  Result<Chosen> made_of(const std::vector<int>& ends,
                         const Insides& insides,
                         const std::vector<KeepChoice>& choices) {
    Chosen out;
    out.ends = ends;
    for (size_t s = 0; s < insides.size(); ++s) {
      out.cost += choices[s].cost;
      for (size_t v = 0; v < insides[s].results.size(); ++v)
        if (choices[s].values[v]) out.kept.insert(insides[s].results[v]);
    }
    TN_TRY(copy, on_copy(graph_, sizes_, [&](Recomputation& made) -> Status {
             made.cut(out.ends);
             made.keep(out.kept);
             return made.rewrite();
           }));
    out.peak = sizes_.peak(copy.view());
    least_ = std::min(least_, out.peak);
    return out;
  }

  Result<std::optional<Chosen>> within(const std::vector<int>& ends) {
    Insides insides;
    std::vector<double> prices;
    TN_CHECK(look_at(ends, insides, prices));
    std::optional<Chosen> best;
    std::vector<KeepChoice> fits, beyond;
    size_t low = 0, high = prices.size();
    while (low < high) {  // the first price that is beyond the budget
      size_t middle = best || low > 0 ? (low + high) / 2 : 0;
      std::vector<KeepChoice> choices = choices_at(insides, prices[middle]);
      TN_TRY(made, made_of(ends, insides, choices));
      if (made.peak <= budget_) {
        best = std::move(made);
        fits = std::move(choices);
        low = middle + 1;
      } else {
        beyond = std::move(choices);
        high = middle;
      }
    }
    if (best && !beyond.empty()) TN_CHECK(fill(ends, insides, fits, beyond, *best));
    return best;
  }

  // Segments are left to the next price as far as the budget goes.
  Status fill(const std::vector<int>& ends,
              const Insides& insides,
              const std::vector<KeepChoice>& fits,
              const std::vector<KeepChoice>& beyond,
              Chosen& best) {
    std::vector<int64_t> sizes;
    std::vector<double> worth;
    for (size_t s = 0; s < insides.size(); ++s) {
      sizes.push_back(std::max<int64_t>(beyond[s].bytes - fits[s].bytes, 0));
      worth.push_back(fits[s].cost - beyond[s].cost);
    }
    int64_t left = budget_ - best.peak;
    for (int i = 0; i < kFills && left > 0; ++i, left /= 2) {
      std::vector<bool> taken = fill_knapsack(sizes, worth, left);
      std::vector<KeepChoice> mixed = fits;
      for (size_t s = 0; s < mixed.size(); ++s)
        if (taken[s]) mixed[s] = beyond[s];
      TN_TRY(made, made_of(ends, insides, mixed));
      if (made.peak > budget_) continue;
      if (made.cost < best.cost) best = std::move(made);
      return {};
    }
    return {};
  }

  const tn_graph* graph_;
  int64_t budget_;
  Sizes sizes_;
  const std::map<std::string, double>& times_;
  int64_t least_ = 0;
};

}  // namespace

std::vector<double> node_costs(const Joint& joint, const std::map<std::string, double>& times) {
  std::vector<double> out;
  for (Node node : joint.forward()) {
    auto measured = times.find(std::string(node.name()));
    out.push_back(measured == times.end() ? estimated(node) : measured->second);
  }
  return out;
}

Result<Chosen> choose_within(const tn_graph* graph,
                             int64_t budget,
                             Sizes sizes,
                             const std::map<std::string, double>& times) {
  return Search(graph, budget, sizes, times).run();
}

}  // namespace tenon::autodiff

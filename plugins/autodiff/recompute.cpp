// SPDX-License-Identifier: Apache-2.0
// autodiff.recompute: what the backward pass reads of a segment of the forward pass is computed
// again when that segment's turn comes, from what enters the segment, and is not kept until then.
// The numbers are the same to the bit: the same nodes on the same values, draws with the same
// seeds.
#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "budget.hpp"
#include "least_peak.hpp"

namespace tenon::autodiff {
namespace {

class Recompute {
 public:
  static Result<Recompute> create(tn_ctx*, const Options& options) {
    Recompute made;
    made.regions_ = options.texts("regions");
    made.budget_ = options.number("budget");
    made.sizes_.is_bf16 = options.text("precision") == "bf16";
    if (made.budget_ > 0 && !made.regions_.empty())
      return invalid("option budget: expected it without option regions, which say what is kept");
    std::string times = options.text("times");
    if (times.empty()) return made;
    nlohmann::json given = nlohmann::json::parse(times, nullptr, false);
    for (const auto& [name, one] : given.items()) {
      if (!one.is_number() || !(one.get<double>() >= 0))
        return invalid(cat("option times: ", name, ": expected milliseconds, got ", one.dump()));
      made.times_[name] = one.get<double>() * 1e6;
    }
    return made;
  }

  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    int64_t before = sizes_.peak({graph});
    nlohmann::json summary;
    Chosen chosen;
    if (budget_ > 0) {
      constexpr double kMost = 0x1p62;  // so that it is a number of bytes
      double bytes = budget_ <= 1 ? budget_ * static_cast<double>(before) : budget_;
      TN_TRY(within,
             choose_within(graph, static_cast<int64_t>(std::min(bytes, kMost)), sizes_, times_));
      chosen = std::move(within);
    } else if (regions_.empty()) {
      TN_TRY(ends, least_peak_cuts(graph, sizes_));
      chosen.ends = std::move(ends);
    }
    {
      TN_TRY(edit, Edit::begin(graph));
      TN_TRY(joint, Joint::of(edit.graph()));
      std::vector<double> costs = node_costs(joint, times_);
      Recomputation made(edit, std::move(joint), sizes_);
      if (!regions_.empty())
        TN_CHECK(made.by_regions(regions_));
      else
        made.cut(chosen.ends);
      made.keep(chosen.kept);
      TN_CHECK(made.rewrite());
      summary = {{"segments", made.n_segments()}, {"nodes_again", made.n_again()}};
      if (budget_ > 0) {
        double forward = std::accumulate(costs.begin(), costs.end(), 0.0);
        summary["cost_again"] = forward > 0 ? chosen.cost / forward : 0;
        summary["values_kept"] = chosen.kept.size();
      }
      TN_CHECK(edit.commit());
    }
    summary["planned_peak_before"] = before;
    summary["planned_peak"] = sizes_.peak({graph});
    return report.write(summary.dump());
  }

 private:
  std::vector<std::string> regions_;
  double budget_ = 0;  // bytes, or a share; 0: none
  Sizes sizes_;
  std::map<std::string, double> times_;  // ns by node
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(recompute,
           tenon::autodiff::Recompute,
           "autodiff.recompute",
           "values between forward and backward are computed again, not kept",
           R"({"properties": {
  "regions": {"type": "array", "items": {"type": "string"}, "description": "scopes whose values are computed again, each as one; none: segments by sqrt(n), cut where little crosses"},
  "budget": {"type": "number", "minimum": 0, "default": 0, "description": "the most bytes of results that are alive at once (planned_peak), or up to 1 a share of what they are without this pass: as little as possible is computed again for it; 0: as few bytes as possible"},
  "precision": {"type": "string", "enum": ["fp32", "bf16"], "default": "fp32", "description": "of the plan that will run: what results take in memory"},
  "times": {"type": "object", "description": "milliseconds of nodes by name, as they were measured; others are estimated from their operations and bytes"}}})")

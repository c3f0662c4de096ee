// SPDX-License-Identifier: Apache-2.0
// "pruner.structured": removes whole channels from every layer that they pass through, so that the
// model is really smaller.
#include <algorithm>

#include "tenon/sdk/original.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "kept.hpp"
#include "removal.hpp"
#include "report.hpp"
#include "scoring.hpp"
#include "selection.hpp"
#include "target.hpp"

namespace tenon::pruner {
namespace {

using nlohmann::ordered_json;

struct Ask {  // a ratio for the layers of a pattern
  std::string pattern;
  double ratio;
};

// {"conv*": 0.5}: the last pattern that fits decides.
Result<std::vector<Ask>> parse_layers(const std::string& text) {
  std::vector<Ask> out;
  if (text.empty()) return out;
  ordered_json parsed = ordered_json::parse(text, nullptr, false);
  for (const auto& [pattern, ratio] : parsed.items()) {
    if (!ratio.is_number() || !(ratio.get<double>() >= 0) || ratio.get<double>() > 1)
      return invalid(cat("option layers: ", pattern, ": expected a ratio from 0 to below 1, got ",
                         ratio.dump()));
    if (ratio.get<double>() == 1)
      return invalid(cat("option layers: ", pattern, ": ratio 1 would empty the layer, expected ",
                         "a ratio from 0 to below 1"));
    out.push_back({pattern, ratio.get<double>()});
  }
  return out;
}

// What is declared of these values becomes what they are.
Status declare_anew(tn_graph* graph, const std::vector<Value>& values) {
  TN_TRY(edit, Edit::begin(graph));
  for (Value value : values)
    TN_CHECK(edit.set_type(edit.value(value.id), edit.value(value.id).type()));
  return edit.commit();
}

class Structured {
 public:
  static Result<Structured> create(tn_ctx* ctx, const Options& options) {
    Structured out;
    out.ctx_ = ctx;
    out.ratio_ = options.number("ratio");
    out.is_global_ = options.text("scope") == "global";
    out.masks_ = options.text("apply") == "mask";
    out.normalize_ = options.text("normalize") == "mean";
    out.reports_scores_ = options.flag("scores");
    out.limits_ = {options.integer("round_to"), options.integer("min_channels")};
    out.selected_ = Selected::read(options);
    out.is_dry_ = options.flag("dry_run");
    TN_TRY(target, Target::parse(options.text("target")));
    out.target_ = target;
    TN_TRY(layers, parse_layers(options.text("layers")));
    out.layers_ = layers;
    if (out.is_global_ && !out.layers_.empty())
      return invalid("option layers: expected with scope local, got scope global");
    TN_TRY(scoring, Scoring::create(ctx, options));
    out.scoring_ = std::move(scoring);
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check({raw}));
    Groups groups = Groups::of(Graph{raw});
    TN_CHECK(check_asked(groups));
    TN_TRY(chosen, choose({raw}, groups));
    TN_TRY(candidates, score(raw, groups, chosen, cancel));
    if (target_) TN_CHECK(find_ratio(raw, groups, chosen, &candidates, cancel));
    TN_TRY(gone, select(candidates));
    Removal removal = removal_of(groups, chosen, gone);
    Cost before = cost_of(raw);
    ordered_json report = describe(groups, chosen, gone);
    report["prunable_macs"] = report_prunable(raw, groups);
    log_barriers(ctx_, groups);
    if (is_dry_) {
      TN_TRY(would, without(raw, removal, masks_));
      report["dry_run"] = true;
      report.update(report_costs(before, cost_of(would.get())));
      return sink.write(report.dump());
    }
    std::vector<Value> shrunk = removal.shrunk();
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(keep_original(edit, raw));
    if (!masks_) {
      std::string kept = kept_after(removal, edit.graph());
      TN_CHECK(edit.set_note(0, kKeptNote, any_text(kept)));
    }
    TN_CHECK(masks_ ? removal.mask(edit) : removal.remove(edit));
    TN_CHECK(edit.commit());
    if (!masks_) TN_CHECK(declare_anew(raw, shrunk));
    report.update(report_costs(before, cost_of(raw)));
    return sink.write(report.dump());
  }

 private:
  Result<std::vector<std::vector<bool>>> select(const std::vector<Candidate>& candidates) const {
    if (is_global_) return select_global(candidates, ratio_, limits_);
    return select_local(candidates, limits_);
  }

  static Removal removal_of(const Groups& groups,
                            const std::vector<size_t>& chosen,
                            const std::vector<std::vector<bool>>& gone) {
    Removal out(groups);
    for (size_t i = 0; i < chosen.size(); ++i)
      out.add(groups.all()[chosen[i]], gone[i]);
    return out;
  }

  // A copy of the model in which these channels are masked, or from which they are removed.
  static Result<OwnedGraph> without(const tn_graph* raw, const Removal& removal, bool masks) {
    TN_TRY(out, OwnedGraph::copy_of(raw));
    TN_TRY(edit, Edit::begin(out.get()));
    TN_CHECK(masks ? removal.mask(edit) : removal.remove(edit));
    TN_CHECK(edit.commit());
    return std::move(out);
  }

  // The least ratio whose model is within the target, by bisection. Ratios of single layers stay.
  Status find_ratio(const tn_graph* raw,
                    const Groups& groups,
                    const std::vector<size_t>& chosen,
                    std::vector<Candidate>* candidates,
                    const Cancel& cancel) {
    constexpr double kMost = 0.98;
    constexpr int kSteps = 10;
    double low = 0, high = kMost, best = -1, nearest = 1;
    for (int step = 0; step <= kSteps; ++step) {
      TN_CHECK(cancel.check());
      set_ratio(step == 0 ? kMost : (low + high) / 2, groups, chosen, candidates);
      auto gone = select(*candidates);
      double left = 0;
      if (gone.ok()) {
        TN_TRY(would, without(raw, removal_of(groups, chosen, *gone), false));
        TN_TRY(share, target_.left(ctx_, raw, would.get(), cancel));
        left = share;
        nearest = std::min(nearest, left);
      }
      bool is_within = left <= target_.share;  // as a ratio that empties layers is beyond it
      if (gone.ok() && is_within) {
        best = ratio_;
        left_ = left;
      }
      if (step == 0 && gone.ok() && !is_within) break;
      (is_within ? high : low) = ratio_;
    }
    if (best < 0)
      return {TN_FAILED_PRECONDITION, cat("option target: expected a share that can be met, got ",
                                          target_.text(), ", the nearest is ", nearest)};
    set_ratio(best, groups, chosen, candidates);
    return {};
  }
  void set_ratio(double ratio,
                 const Groups& groups,
                 const std::vector<size_t>& chosen,
                 std::vector<Candidate>* candidates) {
    ratio_ = ratio;
    for (size_t i = 0; i < chosen.size(); ++i)
      (*candidates)[i].ratio = ratio_of(groups.all()[chosen[i]]);
  }

  double ratio_of(const Group& group) const {
    double ratio = ratio_;
    for (const Ask& ask : layers_)
      for (Node node : group.makers)
        if (!matched_by({ask.pattern}, node).empty()) ratio = ask.ratio;
    return ratio;
  }

  // A layer that is asked for by name must be one that can be pruned.
  Status check_asked(const Groups& groups) const {
    for (const Ask& ask : layers_) {
      bool found = false;
      for (const Group& group : groups.all())
        for (Node node : group.makers)
          found |= !matched_by({ask.pattern}, node).empty();
      if (found || ask.ratio == 0) continue;
      for (const Barrier& one : groups.barriers())
        if (!matched_by({ask.pattern}, one.node).empty())
          return {TN_FAILED_PRECONDITION, cat("option layers: ", one.node.name(),
                                              " cannot be pruned: the channels of its weight ",
                                              one.weight.name(), " must stay, because ", one.why)};
      return invalid(cat("option layers: ", ask.pattern,
                         ": expected the name, operator or scope of a layer that makes channels"));
    }
    return {};
  }

  Result<std::vector<size_t>> choose(Graph graph, const Groups& groups) const {
    std::vector<size_t> out;
    std::string reasons;
    for (size_t g = 0; g < groups.all().size(); ++g) {
      std::string why = selected_.why_left(groups.all()[g].makers);
      if (why.empty()) out.push_back(g);
      if (!why.empty() && reasons.empty()) reasons = cat(groups.all()[g].layer, ": ", why);
    }
    if (!out.empty()) return out;
    for (size_t i = 0; i < groups.barriers().size() && i < 3; ++i) {
      const Barrier& one = groups.barriers()[i];
      reasons += cat(reasons.empty() ? "" : "; ", one.node.name(), ": ", one.why);
    }
    if (reasons.empty())
      reasons = why_no_layers(graph, "the model has no layer that makes channels");
    else if (const std::string unfolded = why_unfolded(graph); !unfolded.empty())
      reasons += cat("; ", unfolded);
    return Status(TN_FAILED_PRECONDITION, cat("nothing to prune (", reasons, ")"));
  }

  Result<std::vector<Candidate>> score(const tn_graph* graph,
                                       const Groups& groups,
                                       const std::vector<size_t>& chosen,
                                       const Cancel& cancel) {
    TN_TRY(scores, scoring_.channels(graph, groups, chosen, cancel));
    std::vector<Candidate> out;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Group& group = groups.all()[chosen[i]];
      std::vector<double> compared = scores.mean[i];
      if (normalize_) divide_by_mean(compared);
      out.push_back({group.layer, std::move(compared), ratio_of(group), group.width});
    }
    scores_ = std::move(scores);
    return out;
  }

  ordered_json describe(const Groups& groups,
                        const std::vector<size_t>& chosen,
                        const std::vector<std::vector<bool>>& gone) const {
    ordered_json pruned = ordered_json::array(), left = ordered_json::array();
    size_t next = 0;
    for (size_t g = 0; g < groups.all().size(); ++g) {
      const Group& group = groups.all()[g];
      if (next == chosen.size() || chosen[next] != g) {
        left.push_back({{"layer", group.layer}, {"why", selected_.why_left(group.makers)}});
        continue;
      }
      ordered_json row = report_group(group);
      std::vector<size_t> removed;
      for (size_t c = 0; c < group.n_channels(); ++c)
        if (gone[next][c]) removed.push_back(c);
      row["kept"] = group.n_channels() - removed.size();
      row["removed"] = removed;
      if (reports_scores_) row["scores"] = scores_.mean[next];
      if (reports_scores_ && !scores_.error.empty()) row["standard_errors"] = scores_.error[next];
      pruned.push_back(std::move(row));
      ++next;
    }
    ordered_json out{{"apply", masks_ ? "mask" : "remove"},
                     {"importance", scoring_.id()},
                     {"scope", is_global_ ? "global" : "local"},
                     {"ratio", ratio_}};
    if (target_) out["target"] = {{"asked", ordered_json::parse(target_.text())}, {"left", left_}};
    out["groups"] = pruned;
    out["left"] = left;
    out["barriers"] = report_barriers(groups);
    return out;
  }

  tn_ctx* ctx_ = nullptr;
  double ratio_ = 0;
  bool is_global_ = false, masks_ = false, normalize_ = true;
  bool is_dry_ = false;
  Target target_;
  double left_ = 1;  // of what the target counts
  Limits limits_;
  Selected selected_;
  std::vector<Ask> layers_;
  bool reports_scores_ = false;
  Scoring scoring_;
  Scores scores_;  // of the groups chosen, as they were given
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(structured,
           tenon::pruner::Structured,
           "pruner.structured",
           "removes whole channels, with all weights that they pass through",
           R"({
  "properties": {
    "ratio": {"needs": {"target": "absent"}, "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.5,
              "description": "share of the channels to remove: of each layer, or with scope global of all"},
    "importance": {"type": "string", "default": "l2", "description": "l1, l2, lamp, median, batch_norm, taylor, taylor2, hessian, wanda, apoz, shapley (an approximation where a width goes through a normalization over it), snip, grasp, synflow, random, given, or the id of another"},
    )" PRUNER_SCORING_OPTIONS R"(,
    "target": {"type": "object",
               "description": "instead of ratio, the share of macs, parameters or measured time that may be left, such as {\"macs\": 0.5}"},
    "dry_run": {"type": "boolean", "default": false, "description": "only report what would go and what it would save"},
    "scope": {"type": "string", "enum": ["local", "global"], "default": "local",
              "description": "rank channels within their layer, or over all layers"},
    "normalize": {"needs": {"scope": ["global"]}, "type": "string", "enum": ["mean", "none"], "default": "mean",
                  "description": "mean: scores are divided by their layer's mean, so that layers compare"},
    "scores": {"type": "boolean", "default": false,
               "description": "report the score of each channel, and its standard error where there are batches"},
    "round_to": {"type": "integer", "minimum": 1, "default": 1,
                 "description": "channels that stay: a multiple of this, rounded up"},
    "min_channels": {"type": "integer", "minimum": 1, "default": 1, "description": "channels that every layer keeps"},
    "layers": {"type": "object", "description": "ratios of single layers by pattern, such as {\"conv1\": 0.3}"},
    )" TENON_SELECTED_OPTIONS("layers whose channels are pruned") R"(,
    "apply": {"type": "string", "enum": ["remove", "mask"], "default": "remove",
              "description": "mask: zero the same entries and keep the shapes of constants and results. Around a LayerNormalization or RMSNormalization whose width loses entries it adds Gather and Pad nodes, and that width cannot be removed afterwards"}}})")

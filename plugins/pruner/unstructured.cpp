// SPDX-License-Identifier: Apache-2.0
// "pruner.unstructured": sets single weights to zero, or masks them. Shapes stay; fewer bytes or
// multiplications need a runtime that makes use of zeros.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tenon/sdk/n_of_m.hpp"
#include "tenon/sdk/original.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "blocks.hpp"
#include "masks.hpp"
#include "removal.hpp"
#include "report.hpp"
#include "scoring.hpp"
#include "selection.hpp"

namespace tenon::pruner {
namespace {

using nlohmann::ordered_json;

// "4x1"
Result<BlockShape> parse_block(const std::string& text) {
  if (text.empty()) return BlockShape{};
  const std::optional<TwoNumbers> pair = two_numbers(text, 'x');
  if (!pair || pair->first < 1 || pair->second < 1)
    return invalid(cat("option block: expected the channels that are made and read, such as 4x1, ",
                       "got '", text, "'"));
  return BlockShape{pair->first, pair->second};
}

struct Target {
  Weight weight;
  std::vector<double> scores;
  uint64_t zeros = 0;  // before
  Mask mask;
};

class Unstructured {
 public:
  static Result<Unstructured> create(tn_ctx* ctx, const Options& options) {
    Unstructured out;
    out.ctx_ = ctx;
    out.sparsity_ = options.number("sparsity");
    if (options.text("schedule") == "cubic") {
      int64_t step = options.integer("step"), steps = options.integer("steps");
      if (step > steps)
        return invalid(cat("option step: expected at most steps (", steps, "), got ", step));
      out.sparsity_ = cubic_sparsity(options.number("initial"), out.sparsity_, step, steps);
    }
    out.is_global_ = options.text("scope") == "global";
    out.rounds_ = options.integer("rounds");
    out.is_relative_ = options.flag("relative");
    out.as_nodes_ = options.text("apply") == "nodes";
    out.is_dry_ = options.flag("dry_run");
    out.selected_ = Selected::read(options);
    TN_TRY(pattern, NofM::read(options.text("pattern")));
    out.pattern_ = pattern;
    TN_TRY(block, parse_block(options.text("block")));
    out.block_ = block;
    if (out.pattern_.m && out.rounds_ > 1)
      return invalid(
          cat("option rounds: expected 1 with pattern, whose share is fixed, got ", out.rounds_));
    if (out.pattern_.m && !out.block_.is_single())
      return invalid("option block: expected none beside option pattern");
    TN_TRY(scoring, Scoring::create(ctx, options));
    out.scoring_ = std::move(scoring);
    return out;
  }

  Status run(tn_graph* model, const Cancel& cancel, Sink& sink) {
    TN_CHECK(selected_.check({model}));
    tn_graph* raw = model;
    OwnedGraph copy;
    if (is_dry_) {
      TN_CHECK(services.graph->clone(model, &raw));
      copy = OwnedGraph::take(raw);
    }
    TN_TRY(folded, Edit::begin(raw));
    TN_CHECK(keep_original(folded, raw));
    const std::vector<NamedMask> masks = masks_of(folded.graph());
    TN_CHECK(fold_masks(folded));
    TN_CHECK(folded.commit());
    Cost before = cost_of(raw);
    std::vector<Target> targets;
    for (int64_t round = 1; round <= rounds_; ++round) {
      Groups groups = Groups::of(Graph{raw});
      TN_TRY(scored, score(raw, groups, cancel));
      targets = std::move(scored);
      select(targets, round);
      TN_CHECK(check_left(targets));
      if (round == rounds_) break;
      TN_TRY(edit, Edit::begin(raw));
      for (const Target& one : targets)
        TN_CHECK(write_zeros(edit, one));
      TN_CHECK(edit.commit());
    }
    ordered_json report = describe(targets);
    std::vector<std::string> chosen;
    TN_TRY(edit, Edit::begin(raw));
    for (const Target& one : targets) {
      chosen.emplace_back(one.weight.value.name());
      TN_CHECK(write(edit, one));
    }
    TN_CHECK(edit.commit());
    Cost after = cost_of(raw);
    TN_TRY(others, Edit::begin(raw));
    TN_CHECK(put_back_masks(others, masks, chosen));
    TN_CHECK(others.commit());
    if (as_nodes_) after.nonzero = before.nonzero - removed_;
    report.update(report_costs(before, after));
    if (is_dry_) report["dry_run"] = true;
    return sink.write(report.dump());
  }

 private:
  void select(std::vector<Target>& targets, int64_t round) {
    // In each of several rounds the same share of what is left goes.
    auto part = static_cast<double>(is_relative_ ? 1 : round) / static_cast<double>(rounds_);
    share_ = rounds_ == 1 ? sparsity_ : 1 - std::pow(1 - sparsity_, part);
    if (pattern_.m) {
      for (Target& one : targets)
        one.mask = keep_n_of_m(one.scores, one.weight.value.type().dims, one.weight.reads,
                               pattern_.n, pattern_.m);
    } else if (is_global_) {
      select_global(targets);
    } else {
      for (Target& one : targets)
        one.mask = drop(one.scores, ids_of(one), goal(one.zeros, one.scores.size()));
    }
    for (const Target& one : targets)
      removed_ += std::count(one.mask.begin(), one.mask.end(), 0) - static_cast<int64_t>(one.zeros);
  }

  // A layer without weights passes nothing on, which is never wanted.
  Status check_left(const std::vector<Target>& targets) const {
    for (const Target& one : targets) {
      size_t n = one.mask.size();
      if (n == one.zeros || std::count(one.mask.begin(), one.mask.end(), 1) > 0) continue;
      return invalid(cat("option sparsity: ", sparsity_, " would empty ", one.weight.node.name(),
                         ": all ", n, " numbers of its weight ", one.weight.value.name(),
                         " would go; lower it, or use scope local, or more rounds"));
    }
    return {};
  }

  std::string why_skipped(const Weight& weight) const {
    std::string why = selected_.why_left(weight.node);
    if (!why.empty()) return why;
    return pattern_.why_not(weight.value.type().dims[weight.reads]);
  }

  // What is zero already counts as pruned, and stays so: it scores below all else.
  Result<std::vector<Target>> score(const tn_graph* graph,
                                    const Groups& groups,
                                    const Cancel& cancel) {
    std::vector<Weight> weights;
    skipped_ = ordered_json::array();
    std::string reasons;
    for (const Weight& weight : groups.weights()) {
      std::string why = why_skipped(weight);
      if (why.empty()) {
        weights.push_back(weight);
        continue;
      }
      if (skipped_.empty()) reasons = cat(weight.node.name(), ": ", why);
      skipped_.push_back(
          {{"node", weight.node.name()}, {"weight", weight.value.name()}, {"why", why}});
    }
    if (weights.empty() && reasons.empty())
      reasons = why_no_layers({graph}, "the model has no weight matrix or kernel");
    if (weights.empty())
      return Status(TN_FAILED_PRECONDITION, cat("nothing to prune (", reasons, ")"));
    TN_TRY(scores, scoring_.elements(graph, weights, cancel));
    std::vector<Target> out;
    for (size_t w = 0; w < weights.size(); ++w) {
      TN_TRY(stays, mask_of_zeros(weights[w].value.constant()));
      Target target{weights[w], std::move(scores.mean[w]), 0, {}};
      for (size_t i = 0; i < stays.size(); ++i) {
        if (stays[i]) continue;
        ++target.zeros;
        target.scores[i] = -std::numeric_limits<double>::infinity();
      }
      out.push_back(std::move(target));
    }
    return out;
  }

  // How many of n are to be zero; never less than are.
  uint64_t goal(uint64_t zeros, size_t n) const {
    double all = static_cast<double>(n), now = static_cast<double>(zeros);
    double wanted = is_relative_ ? now + share_ * (all - now) : share_ * all;
    return std::max(zeros, static_cast<uint64_t>(std::floor(wanted + 1e-9)));
  }

  // Nothing where each weight goes alone.
  std::vector<uint32_t> ids_of(const Target& one) const {
    if (block_.is_single()) return {};
    return block_ids(one.weight.value.type().dims, one.weight.makes, one.weight.reads, block_);
  }
  static Mask drop(const std::vector<double>& scores,
                   const std::vector<uint32_t>& ids,
                   uint64_t gone) {
    return ids.empty() ? drop_lowest(scores, gone) : drop_lowest_blocks(scores, ids, gone);
  }

  void select_global(std::vector<Target>& targets) const {
    std::vector<double> all;
    std::vector<uint32_t> all_ids;
    uint32_t n_ids = 0;
    uint64_t zeros = 0;
    for (const Target& one : targets) {
      all.insert(all.end(), one.scores.begin(), one.scores.end());
      zeros += one.zeros;
      uint32_t most = 0;
      for (uint32_t id : ids_of(one)) {
        all_ids.push_back(n_ids + id);
        most = std::max(most, id);
      }
      n_ids += most + 1;
    }
    Mask mask = drop(all, all_ids, goal(zeros, all.size()));
    auto at = mask.begin();
    for (Target& one : targets) {
      auto end = at + static_cast<std::ptrdiff_t>(one.scores.size());
      one.mask.assign(at, end);
      at = end;
    }
  }

  Status write(EditView edit, const Target& one) const {
    if (as_nodes_) return insert_mask(edit, one.weight.value, one.mask);
    return write_zeros(edit, one);
  }
  Status write_zeros(EditView edit, const Target& one) const {
    TN_TRY(zeroed, apply_mask(ctx_, one.weight.value.constant(), one.mask));
    return replace_constant(edit, one.weight.value, zeroed);
  }

  ordered_json describe(const std::vector<Target>& targets) {
    ordered_json rows = ordered_json::array();
    uint64_t gone = 0, all = 0;
    for (const Target& one : targets) {
      auto zero = static_cast<uint64_t>(std::count(one.mask.begin(), one.mask.end(), 0));
      rows.push_back(
          {{"node", one.weight.node.name()},
           {"weight", one.weight.value.name()},
           {"elements", one.mask.size()},
           {"zeros", zero},
           {"sparsity", static_cast<double>(zero) / static_cast<double>(one.mask.size())}});
      gone += zero;
      all += one.mask.size();
    }
    return {{"apply", as_nodes_ ? "nodes" : "zero"},
            {"importance", scoring_.id()},
            {"sparsity", static_cast<double>(gone) / static_cast<double>(all)},
            {"weights", rows},
            {"skipped", skipped_}};
  }

  tn_ctx* ctx_ = nullptr;
  double sparsity_ = 0, share_ = 0;  // share_: of this round
  int64_t rounds_ = 1;
  bool is_global_ = false, is_relative_ = false, as_nodes_ = false, is_dry_ = false;
  NofM pattern_;
  BlockShape block_;
  Selected selected_;
  ordered_json skipped_ = ordered_json::array();
  int64_t removed_ = 0;
  Scoring scoring_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(unstructured,
           tenon::pruner::Unstructured,
           "pruner.unstructured",
           "sets single weights to zero, or masks them",
           R"({
  "properties": {
    "sparsity": {"needs": {"pattern": "absent"}, "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.5,
                 "description": "share of the weights that are zero afterwards"},
    "scope": {"needs": {"pattern": "absent"}, "type": "string", "enum": ["local", "global"], "default": "local",
              "description": "rank weights within their layer, or over all layers"},
    "pattern": {"type": "string", "description": "N:M keeps N of M neighbours along the input axis, of a convolution at each tap, such as 2:4; instead of sparsity"},
    "block": {"type": "string", "description": "RxC: weights that make R channels from C go or stay together, such as 4x1; kernels for sparse weights are faster with it"},
    "dry_run": {"type": "boolean", "default": false, "description": "only report what would go and what it would save"},
    "relative": {"needs": {"pattern": "absent"}, "type": "boolean", "default": false,
                 "description": "sparsity is a share of the weights that are not zero yet"},
    "rounds": {"type": "integer", "minimum": 1, "default": 1,
               "description": "number of rounds, each with scores of what is left, the same share of it each time"},
    "schedule": {"needs": {"pattern": "absent"}, "type": "string", "enum": ["constant", "cubic"], "default": "constant",
                 "description": "cubic: rise from initial to sparsity over the steps"},
    "step": {"needs": {"schedule": ["cubic"]}, "type": "integer", "minimum": 0, "default": 0, "description": "of the cubic schedule"},
    "steps": {"needs": {"schedule": ["cubic"]}, "type": "integer", "minimum": 1, "default": 1, "description": "of the cubic schedule"},
    "initial": {"needs": {"schedule": ["cubic"]}, "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0,
                "description": "sparsity at step 0 of the cubic schedule"},
    "importance": {"type": "string", "default": "l1", "description": "l1, l2, lamp, taylor, taylor2, hessian, wanda, snip, grasp, synflow, random, given, or the id of another"},
    )" PRUNER_SCORING_OPTIONS R"(,
    )" TENON_SELECTED_OPTIONS("layers to prune") R"(,
    "apply": {"type": "string", "enum": ["zero", "nodes"], "default": "zero",
              "description": "nodes: multiply by masks in the graph, which training keeps"}}})")

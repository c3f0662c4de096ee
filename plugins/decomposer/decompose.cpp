// SPDX-License-Identifier: Apache-2.0
#include "decompose.hpp"

#include <atomic>
#include <limits>

#include <nlohmann/json.hpp>

#include "tenon/sdk/original.hpp"

namespace tenon::decomposer {
namespace {

using Json = nlohmann::ordered_json;
using Whitenings = std::map<tn_node_id, Whitening>;

// Layers are independent, so each is judged on whatever thread is free.
Result<std::vector<Verdict>> judge_all(tn_ctx* ctx,
                                       const std::vector<Node>& nodes,
                                       const Method& method,
                                       const Choice& choice,
                                       const Whitenings& whitenings,
                                       const Cancel& cancel) {
  std::vector<Verdict> verdicts(nodes.size());
  std::atomic<bool> out_of_memory = false;
  std::atomic<uint64_t> done = 0;
  Progress progress(ctx, "decomposing", nodes.size());
  auto body = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end && !cancel.requested(); ++i) {
      try {
        auto whitening = whitenings.find(nodes[i].id);
        verdicts[i] = judge(method, choice, nodes[i],
                            whitening == whitenings.end() ? nullptr : &whitening->second);
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
      }
      progress.update(++done);
    }
  };
  parallel_for(ctx, nodes.size(), 1, body);
  TN_CHECK(cancel.check());
  if (out_of_memory) return Status(TN_RESOURCE_EXHAUSTED, "out of memory");
  return verdicts;
}

// A layer that the user names must be one that can be decomposed, and a pattern must mean some.
Status check_named(const Choice& choice, const std::vector<Verdict>& verdicts) {
  for (const std::string& pattern : choice.selected.only) {
    bool used = false;
    for (const Verdict& verdict : verdicts) {
      const bool may_stay = choice.leaves_unsuited && !verdict.suited.empty();
      if (verdict.is_misfit && !may_stay && pattern == verdict.node.name())
        return invalid(cat("option only: node ", pattern, ": ", verdict.why));
      used = used || !matched_by({pattern}, verdict.node).empty();
    }
    if (!used)
      return invalid(
          cat("option only: expected names or patterns of convolutions and products "
              "with a weight, got '",
              pattern, "', which fits none"));
  }
  return {};
}

// The share of all layers' FLOPs that is left when these verdicts are carried out. Layers that
// were never factored are as they were.
Result<double> flops_left(const std::vector<Verdict>& verdicts) {
  double before = 0, after = 0;
  for (const Verdict& verdict : verdicts) {
    double whole = verdict.before.flops;
    if (!verdict.is_factored) {
      Result<Layer> layer = read_layer(verdict.node);
      whole = layer.ok() ? cost_of(*layer).flops : 0;
    }
    before += whole;
    after += verdict.why.empty() ? verdict.after.flops : whole;
  }
  return before > 0 ? after / before : 1;
}

// Verdicts by the largest share of energy, the same for all layers, that is within the budget: what
// is spent where follows from the layers' spectra. Bisected, as less energy is never more work but
// for roundings.
Result<std::vector<Verdict>> judge_by_budget(tn_ctx* ctx,
                                             const std::vector<Node>& nodes,
                                             const Method& method,
                                             const Choice& choice,
                                             const Whitenings& whitenings,
                                             const Cancel& cancel,
                                             Json* report) {
  constexpr int kSteps = 12;
  double low = 0, high = 1, nearest = 1;
  std::vector<Verdict> best;
  for (int step = 0; step < kSteps; ++step) {
    double energy = (low + high) / 2;
    std::unique_ptr<Method> at = method.at_energy(energy);
    TN_TRY(verdicts, judge_all(ctx, nodes, *at, choice, whitenings, cancel));
    TN_TRY(left, flops_left(verdicts));
    nearest = std::min(nearest, left);
    (left <= choice.budget ? low : high) = energy;
    if (left > choice.budget) continue;
    best = std::move(verdicts);
    *report = {{"asked", choice.budget}, {"left", left}, {"energy", energy}};
  }
  if (best.empty())
    return Status(
        TN_FAILED_PRECONDITION,
        cat("option budget: expected a share of the FLOPs that ranks can meet, got ", choice.budget,
            ", the nearest is ", nearest, " (max_error and max_ratio say which layers are left)"));
  return best;
}

// By the clock where the layer can run alone, else by its FLOPs.
Status judge_by_measuring(tn_ctx* ctx,
                          const Choice& choice,
                          Verdict* verdict,
                          const Cancel& cancel) {
  Result<Times> times =
      measure(ctx, verdict->layer, verdict->factors.steps, choice.backends, cancel);
  TN_CHECK(cancel.check());
  if (times.ok()) {
    verdict->times = *times;
    judge_times(choice, verdict);
  } else {
    verdict->unmeasured = times.status().text();
    judge_cost(choice, verdict);
  }
  return {};
}

// Each layer by the largest share of energy whose ranks are measured to be within the share of its
// time. Time does not fall evenly with ranks, so that the bisection finds a good one, not the best.
Result<std::vector<Verdict>> judge_by_time(tn_ctx* ctx,
                                           const std::vector<Node>& nodes,
                                           const Method& method,
                                           const Choice& choice,
                                           const Whitenings& whitenings,
                                           const Cancel& cancel) {
  constexpr int kSteps = 6;
  std::vector<Verdict> out;
  Progress progress(ctx, "measuring", nodes.size());
  for (Node node : nodes) {
    auto whitening = whitenings.find(node.id);
    Verdict best;
    double low = 0, high = 1, nearest = std::numeric_limits<double>::infinity();
    for (int step = 0; step < kSteps; ++step) {
      double energy = (low + high) / 2;
      Verdict at = judge(*method.at_energy(energy), choice, node,
                         whitening == whitenings.end() ? nullptr : &whitening->second);
      if (!at.is_factored || at.factors.steps.empty()) {
        if (best.why.empty() && !best.is_factored) best = std::move(at);
        if (!best.is_factored) break;
        low = energy;  // errors that are too large have too few ranks
        continue;
      }
      Result<Times> times = measure(ctx, at.layer, at.factors.steps, choice.backends, cancel);
      TN_CHECK(cancel.check());
      if (!times.ok()) {
        best = std::move(at);
        best.why = cat("cannot be measured: ", times.status().text());
        break;
      }
      at.times = *times;
      double left = times->after_ms / times->before_ms;
      nearest = std::min(nearest, left);
      (left <= choice.time ? low : high) = energy;
      if (left <= choice.time) best = std::move(at);
    }
    if (!best.is_factored && best.why.empty()) {
      best.node = node;
      best.why = cat("option time: no ranks leave ", choice.time,
                     " of its time, the nearest leave ", nearest);
    }
    out.push_back(std::move(best));
    progress.update(out.size());
  }
  return out;
}

Json figures(const Verdict& verdict) {
  Json row;
  for (const auto& [name, rank] : verdict.factors.ranks)
    row[std::string(name)] = rank;
  row["error"] = verdict.factors.error;
  row["random_error"] = verdict.random_error;
  row["parameters"] = {{"before", verdict.before.parameters}, {"after", verdict.after.parameters}};
  row["flops"] = {{"before", verdict.before.flops}, {"after", verdict.after.flops}};
  if (verdict.layer.is_open)
    row["flops"]["per"] =
        cat(verdict.layer.is_transposed() ? "input" : "output", " position: sizes are not known");
  if (!verdict.unmeasured.empty()) row["unmeasured"] = verdict.unmeasured;
  if (verdict.times.backend.empty()) return row;
  row["ms"] = {{"before", verdict.times.before_ms},
               {"after", verdict.times.after_ms},
               {"backend", verdict.times.backend}};
  return row;
}

Json report_of(const std::vector<Verdict>& verdicts) {
  Json done = Json::array(), left = Json::array();
  Cost before, after;
  for (const Verdict& verdict : verdicts) {
    Json row{{"node", verdict.node.name()}, {"op", verdict.node.type()}};
    bool is_done = verdict.why.empty();
    if (!is_done) row["why"] = verdict.why;
    if (!verdict.suited.empty()) row["suited"] = verdict.suited;
    if (verdict.is_factored) row.update(figures(verdict));
    (is_done ? done : left).push_back(std::move(row));
    if (!is_done) continue;
    before.parameters += verdict.before.parameters;
    before.flops += verdict.before.flops;
    after.parameters += verdict.after.parameters;
    after.flops += verdict.after.flops;
  }
  Json counts{{"decomposed", done.size()}, {"left", left.size()}};
  Json parameters{{"before", before.parameters}, {"after", after.parameters}};
  Json flops{{"before", before.flops}, {"after", after.flops}};
  return {{"counts", counts},
          {"parameters", parameters},
          {"flops", flops},
          {"decomposed", done},
          {"left", left}};
}

}  // namespace

Status decompose(tn_ctx* ctx,
                 tn_graph* model,
                 const Method& method,
                 const Choice& choice,
                 const Cancel& cancel,
                 Sink& sink) {
  tn_graph* graph = model;
  OwnedGraph copy;
  if (choice.is_dry) {
    TN_CHECK(services.graph->clone(model, &graph));
    copy = OwnedGraph::take(graph);
  }
  TN_CHECK(choice.selected.check({graph}));
  std::vector<Node> nodes = Graph{graph}.nodes();
  std::erase_if(nodes, [](Node node) { return !has_weight(node); });
  Whitenings whitenings;
  if (choice.inputs.data) {
    TN_TRY(found, whitenings_of(ctx, {graph}, nodes, choice.inputs, choice.backends, cancel));
    whitenings = std::move(found);
  }
  Json budget;
  Result<std::vector<Verdict>> judged =
      choice.budget > 0 ? judge_by_budget(ctx, nodes, method, choice, whitenings, cancel, &budget)
      : choice.time > 0 ? judge_by_time(ctx, nodes, method, choice, whitenings, cancel)
                        : judge_all(ctx, nodes, method, choice, whitenings, cancel);
  if (!judged.ok()) return std::move(judged).status();
  std::vector<Verdict> verdicts = std::move(*judged);
  TN_CHECK(check_named(choice, verdicts));
  for (Verdict& verdict : verdicts)
    if (choice.measure && choice.time == 0 && verdict.why.empty())
      TN_CHECK(judge_by_measuring(ctx, choice, &verdict, cancel));
  if (!budget.is_null()) {  // without the layers that are slower by measurement
    TN_TRY(left, flops_left(verdicts));
    budget["left"] = left;
    if (left > choice.budget)
      log_line(ctx, TN_LOG_WARNING,
               cat("option budget: asked for ", choice.budget, " of the FLOPs, ", left,
                   " are left, as layers were measured to be slower when decomposed; measure = "
                   "false decides by FLOPs"));
  }
  Json report = report_of(verdicts);  // names are gone after the edit
  if (!budget.is_null()) report["budget"] = budget;
  if (choice.is_dry) report["dry_run"] = true;
  TN_TRY(edit, Edit::begin(graph));
  TN_CHECK(keep_original(edit, graph));
  for (const Verdict& verdict : verdicts) {
    if (!verdict.why.empty()) continue;
    std::string where = cat("node ", verdict.node.name());
    TN_CHECK(
        replace(edit, edit.node(verdict.node.id), verdict.layer, verdict.factors.steps).in(where));
  }
  TN_CHECK(edit.commit());
  log_line(ctx, TN_LOG_INFO,
           cat("decomposed: ", report["counts"]["decomposed"].get<size_t>(),
               " layers; left: ", report["counts"]["left"].get<size_t>()));
  return sink.write(report.dump());
}

}  // namespace tenon::decomposer

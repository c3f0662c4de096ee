// SPDX-License-Identifier: Apache-2.0
#include "decompose.hpp"

#include <atomic>

#include <nlohmann/json.hpp>

#include "tenon/sdk/original.hpp"

namespace tenon::decomposer {
namespace {

using Json = nlohmann::ordered_json;

// Layers are independent, so each is judged on whatever thread is free.
Result<std::vector<Verdict>> judge_all(tn_ctx* ctx,
                                       const std::vector<Node>& nodes,
                                       const Method& method,
                                       const Choice& choice,
                                       const Cancel& cancel) {
  std::vector<Verdict> verdicts(nodes.size());
  std::atomic<bool> out_of_memory = false;
  std::atomic<uint64_t> done = 0;
  Progress progress(ctx, "decomposing", nodes.size());
  auto body = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end && !cancel.requested(); ++i) {
      try {
        verdicts[i] = judge(method, choice, nodes[i]);
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
  for (const std::string& pattern : choice.only) {
    bool used = false;
    for (const Verdict& verdict : verdicts) {
      if (verdict.is_misfit && pattern == verdict.node.name())
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

Json figures(const Verdict& verdict) {
  Json row;
  for (const auto& [name, rank] : verdict.factors.ranks)
    row[std::string(name)] = rank;
  row["error"] = verdict.factors.error;
  row["random_error"] = verdict.random_error;
  row["parameters"] = {{"before", verdict.before.parameters}, {"after", verdict.after.parameters}};
  row["flops"] = {{"before", verdict.before.flops}, {"after", verdict.after.flops}};
  if (verdict.layer.is_open) row["flops"]["per"] = "output position: sizes are not known";
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
                 tn_graph* graph,
                 const Method& method,
                 const Choice& choice,
                 const Cancel& cancel,
                 Sink& sink) {
  std::vector<Node> nodes = Graph{graph}.nodes();
  std::erase_if(nodes, [](Node node) { return !has_weight(node); });
  TN_TRY(verdicts, judge_all(ctx, nodes, method, choice, cancel));
  TN_CHECK(check_named(choice, verdicts));
  for (Verdict& verdict : verdicts) {
    if (!choice.measure || !verdict.why.empty()) continue;
    Result<Times> times =
        measure(ctx, verdict.layer, verdict.factors.steps, choice.backends, cancel);
    TN_CHECK(cancel.check());
    if (times.ok()) {
      verdict.times = *times;
      judge_times(choice, &verdict);
    } else {
      verdict.why = cat("cannot be measured: ", times.status().message());
    }
  }
  Json report = report_of(verdicts);  // names are gone after the edit
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

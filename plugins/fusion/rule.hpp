// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rule is one file in rules/ that says what it looks for and what it puts there. FUSION_RULE
// makes it a pass of its own, and the build puts it into the list that fusion.default goes through
// (list.hpp). Most rules are local: they look at one node and what feeds it (rewriter.hpp).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/role/pass.hpp"

namespace tenon::fusion {

struct Settings {
  tn_ctx* ctx = nullptr;
  const tn_cancel* cancel = nullptr;
  std::string scope;            // only nodes of this scope and below; empty: all
  int64_t max_bytes = 1 << 24;  // of a folded constant, beyond what it is made from
  bool integers_only =
      false;  // only integers and truth values are folded, and what reads them alone
  std::vector<std::string> operators;  // what fusion.expand expands; empty: as it says itself
  bool keeps_shared = false;  // a constant that other nodes read too is not what goes for it

  static Settings from(tn_ctx* ctx, const Options& options);
  bool covers(Node node) const;
  // Refuses a scope that no node has, in bodies neither, and an operator that there is not or that
  // stands for no others: nothing would be done, in silence.
  Status check(tn_graph* graph) const;
};

struct Rule {
  std::string_view id;
  // How many times it was applied. Ends its edits: the graph is whole between rules.
  Result<int64_t> (*run)(tn_graph*, const Settings&);
  std::string_view name() const { return id.substr(id.find('.') + 1); }
};

// Whether nodes may have graphs of their own. No rule makes such a node.
bool has_bodies(tn_graph* graph);
// On the graph, without the bodies of its control-flow nodes.
Result<int64_t> run_alone(const Rule& rule, tn_graph* graph, const Settings& settings);
// With them.
Result<int64_t> run_everywhere(const Rule& rule, tn_graph* graph, const Settings& settings);

template <const Rule& kRule>
class RulePass {
 public:
  static Result<RulePass> create(tn_ctx* ctx, const Options& options) {
    return RulePass(Settings::from(ctx, options));
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    settings_.cancel = cancel.raw();
    TN_CHECK(settings_.check(graph));
    TN_TRY(changed, run_everywhere(kRule, graph, settings_));
    return report.write(cat("{\"changes\": {\"", kRule.name(), "\": ", changed, "}}"));
  }

 private:
  explicit RulePass(Settings settings) : settings_(std::move(settings)) {}
  Settings settings_;
};

}  // namespace tenon::fusion

// clang-format off
#define FUSION_SCOPE_OPTION \
  "\"scope\": {\"type\": \"string\", \"default\": \"\", \"description\": " \
  "\"only nodes of this scope and below; empty is all\"}"
#define FUSION_BYTES_OPTION \
  "\"max_bytes\": {\"type\": \"integer\", \"default\": 16777216, \"minimum\": 0, \"description\": " \
  "\"a folded constant may be larger than what it is made from by so many bytes\"}, " \
  "\"shared\": {\"type\": \"string\", \"enum\": [\"copy\", \"keep\"], \"default\": \"copy\", \"description\": " \
  "\"keep: constants that other nodes read too count as nothing that a folded one is made from, so that no large weight is stored twice\"}"
// clang-format on

#define FUSION_DECLARE_RULE(word) extern "C" const tenon::fusion::Rule tenon_fusion_rule_##word;
// options: properties of its own as JSON, "" or with a comma in front.
#define FUSION_RULE_WITH(word, rule_id, summary, run, options)                          \
  FUSION_DECLARE_RULE(word)                                                             \
  const tenon::fusion::Rule tenon_fusion_rule_##word = {rule_id, run};                  \
  TENON_PASS(word, tenon::fusion::RulePass<tenon_fusion_rule_##word>, rule_id, summary, \
             "{\"properties\": {" FUSION_SCOPE_OPTION ", " FUSION_BYTES_OPTION options "}}")
#define FUSION_RULE(word, rule_id, summary, run) FUSION_RULE_WITH(word, rule_id, summary, run, "")

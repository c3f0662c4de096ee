// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

namespace tenon::fusion {
namespace {

// Each rule makes the graph smaller or simpler, so rounds end by themselves; a rule that does not
// keep to this is stopped here.
constexpr int64_t kMaxRounds = 50;

}  // namespace

Status run_rounds(tn_graph* graph,
                  const Settings& settings,
                  const std::vector<const Rule*>& rules,
                  Sink& report) {
  uint64_t n_before = Graph{graph}.n_nodes();
  std::vector<int64_t> counts(rules.size());
  const auto run = has_bodies(graph) ? run_everywhere : run_alone;
  // A rule need not look again at a graph that it has left as it is.
  int64_t round = 0;
  size_t unchanged = 0;  // rules that the graph as it is has been shown to
  for (; unchanged < rules.size() && round < kMaxRounds; ++round) {
    for (size_t i = 0; i < rules.size() && unchanged < rules.size(); ++i) {
      TN_TRY(applied, run(*rules[i], graph, settings));
      counts[i] += applied;
      unchanged = applied > 0 ? 0 : unchanged + 1;
    }
  }
  std::string by_rule;
  for (size_t i = 0; i < rules.size(); ++i)
    by_rule += cat(i ? ", \"" : "\"", rules[i]->name(), "\": ", counts[i]);
  return report.write(cat("{\"rounds\": ", round, ", \"nodes_before\": ", n_before,
                          ", \"nodes_after\": ", Graph{graph}.n_nodes(), ", \"changes\": {",
                          by_rule, "}}"));
}

}  // namespace tenon::fusion

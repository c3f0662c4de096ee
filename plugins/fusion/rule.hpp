// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite rule looks at one node and either leaves the graph alone or changes it around that
// node; the engine walks all nodes until no rule changes anything. A rule that must see the whole
// graph at once (constants, dead code, common subexpressions) gives `whole` instead of `at`.
//
// Each rule is one file rules/x.cpp that opens with Before / After / Needs and ends with
// TENON_RULE(x, "x", "summary", at, whole), which also makes the pass "fusion.x".

#include <string>
#include <vector>

#include "tenon/sdk/role/pass.hpp"

namespace tenon::fusion {

struct Rule {
  const char* name;
  Result<bool> (*at)(EditView, Node);             // true: it changed something; or NULL
  Result<uint64_t> (*whole)(tn_ctx*, tn_graph*);  // how many changes; or NULL
};

// Applies the rules in order, again and again until nothing changes or `rounds` are over.
// counts: one per rule, added to.
Status apply_rules(tn_ctx* ctx,
                   tn_graph* graph,
                   const std::vector<const Rule*>& rules,
                   const Cancel& cancel,
                   std::vector<uint64_t>* counts);

// {"changes": {"rule": n, ...}}
std::string report_of(const std::vector<const Rule*>& rules, const std::vector<uint64_t>& counts);

// One rule as a pass of its own.
template <const Rule& kRule>
class SinglePass {
 public:
  static Result<SinglePass> create(tn_ctx* ctx, const Options&) { return SinglePass(ctx); }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    std::vector<const Rule*> rules{&kRule};
    std::vector<uint64_t> counts(1);
    TN_CHECK(apply_rules(ctx_, graph, rules, cancel, &counts));
    return report.write(report_of(rules, counts));
  }

 private:
  explicit SinglePass(tn_ctx* ctx) : ctx_(ctx) {}
  tn_ctx* ctx_;
};

// A scalar constant, as a number; false when the value is none.
bool scalar_of(Value value, double* out);
// A constant of n floats (f32), or NULL.
const float* floats_of(Value value, int64_t n);

}  // namespace tenon::fusion

#define TENON_DECLARE_RULE(word) extern "C" const tenon::fusion::Rule tenon_rule_##word;
#define TENON_RULE(word, id, summary, at, whole)                                        \
  TENON_DECLARE_RULE(word)                                                              \
  const tenon::fusion::Rule tenon_rule_##word = {id, at, whole};                        \
  TENON_PASS(word, tenon::fusion::SinglePass<tenon_rule_##word>, "fusion." id, summary, \
             R"({"properties": {}})")

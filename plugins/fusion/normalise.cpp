// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules.hpp"

namespace tenon::fusion {
namespace {

Status check_names(const std::vector<std::string>& names, std::string_view option) {
  for (const std::string& name : names) {
    std::vector<const Rule*> rules = default_rules();
    bool known = std::any_of(rules.begin(), rules.end(),
                             [&](const Rule* rule) { return name == rule->name; });
    if (known) continue;
    std::string all;
    for (const Rule* rule : rules)
      all += cat(all.empty() ? "" : ", ", rule->name);
    return invalid(
        cat("option ", option, ": expected names of rules (", all, "), got '", name, "'"));
  }
  return {};
}

}  // namespace

class Default {
 public:
  static Result<Default> create(tn_ctx* ctx, const Options& options) {
    Default pass(ctx);
    pass.only_ = options.texts("only");
    pass.skip_ = options.texts("skip");
    TN_CHECK(check_names(pass.only_, "only"));
    TN_CHECK(check_names(pass.skip_, "skip"));
    return pass;
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    std::vector<const Rule*> rules;
    for (const Rule* rule : default_rules()) {
      auto listed = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), rule->name) != names.end();
      };
      if ((only_.empty() || listed(only_)) && !listed(skip_)) rules.push_back(rule);
    }
    std::vector<uint64_t> counts(rules.size());
    TN_CHECK(apply_rules(ctx_, graph, rules, cancel, &counts));
    return report.write(report_of(rules, counts));
  }

 private:
  explicit Default(tn_ctx* ctx) : ctx_(ctx) {}
  tn_ctx* ctx_;
  std::vector<std::string> only_, skip_;
};

}  // namespace tenon::fusion

TENON_PASS(normalise,
           tenon::fusion::Default,
           "fusion.default",
           "every rule that makes a graph simpler for all backends",
           R"({"properties": {
  "only": {"type": "array", "items": {"type": "string"}, "description": "only these rules"},
  "skip": {"type": "array", "items": {"type": "string"}, "description": "not these rules"}}})")

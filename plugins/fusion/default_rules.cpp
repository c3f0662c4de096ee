// SPDX-License-Identifier: Apache-2.0
// fusion.default: all rules of the list in its order, again and again until none applies.
#include <algorithm>

#include "list.hpp"
#include "rounds.hpp"

namespace tenon::fusion {
namespace {

Status check_names(const std::vector<std::string>& names, std::string_view option) {
  for (const std::string& name : names) {
    std::string known;
    bool found = false;
    for (const Rule* rule : rules()) {
      known += cat(known.empty() ? "" : ", ", rule->name());
      found = found || name == rule->name() || name == rule->id;
    }
    if (!found) {
      return invalid(
          cat("option ", option, ": expected names of rules (", known, "), got '", name, "'"));
    }
  }
  return {};
}

bool names_rule(const std::vector<std::string>& names, const Rule& rule) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == rule.id || name == rule.name();
  });
}

class Default {
 public:
  static Result<Default> create(tn_ctx* ctx, const Options& options) {
    std::vector<std::string> only = options.texts("only"), skip = options.texts("skip");
    TN_CHECK(check_names(only, "only"));
    TN_CHECK(check_names(skip, "skip"));
    Default out(Settings::from(ctx, options));
    for (const Rule* rule : rules()) {
      bool wanted = only.empty() || names_rule(only, *rule);
      if (wanted && !names_rule(skip, *rule)) out.rules_.push_back(rule);
    }
    return out;
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    settings_.cancel = cancel.raw();
    TN_CHECK(settings_.check(graph));
    return run_rounds(graph, settings_, rules_, report);
  }

 private:
  explicit Default(Settings settings) : settings_(std::move(settings)) {}
  Settings settings_;
  std::vector<const Rule*> rules_;
};

}  // namespace
}  // namespace tenon::fusion

TENON_PASS(default_rules,
           tenon::fusion::Default,
           "fusion.default",
           "all rewriting rules until none applies",
           "{\"properties\": {" FUSION_SCOPE_OPTION ", " FUSION_BYTES_OPTION
           R"(, "only": {"type": "array", "items": {"type": "string"},
                         "description": "names of rules to use; none is all"},
               "skip": {"type": "array", "items": {"type": "string"},
                        "description": "names of rules to leave out"}}})")

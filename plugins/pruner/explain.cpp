// SPDX-License-Identifier: Apache-2.0
// "pruner.explain": changes nothing; reports which channels could be removed together, and why the
// others must stay.
#include "tenon/sdk/role/pass.hpp"

#include "report.hpp"

namespace tenon::pruner {
namespace {

class Explain {
 public:
  static Result<Explain> create(tn_ctx*, const Options&) { return Explain{}; }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    Groups groups = Groups::of(Graph{raw});
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Group& group : groups.all())
      rows.push_back(report_group(group));
    Cost cost = cost_of(raw);
    nlohmann::ordered_json report{{"groups", rows}, {"barriers", report_barriers(groups)}};
    report["parameters"] = cost.parameters;
    report["macs"] = nullptr;
    if (cost.macs) report["macs"] = *cost.macs;
    report["prunable_macs"] = report_prunable(raw, groups);
    return sink.write(report.dump());
  }
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(explain,
           tenon::pruner::Explain,
           "pruner.explain",
           "reports dependency groups and barriers, changes nothing",
           "{}")

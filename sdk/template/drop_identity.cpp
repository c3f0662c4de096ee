// SPDX-License-Identifier: Apache-2.0
// Before: y = Identity(x), z = f(y).  After: z = f(x).  Needs: nothing.
#include "tenon/sdk/role/pass.hpp"

namespace {

struct DropIdentity {
  int64_t limit;

  static tenon::Result<DropIdentity> create(tn_ctx*, const tenon::Options& options) {
    return DropIdentity{options.integer("limit", 0)};
  }

  tenon::Status run(tn_graph* graph, const tenon::Cancel& cancel, tenon::Sink& report) {
    TN_TRY(edit, tenon::Edit::begin(graph));
    int64_t n_dropped = 0;
    for (tenon::Node node : edit.graph().nodes()) {
      if (cancel.requested()) return {TN_CANCELLED, "cancelled"};
      if (!node.is("Identity") || (limit > 0 && n_dropped == limit)) continue;
      TN_CHECK(edit.replace(node.output(), node.input(0)));
      TN_CHECK(edit.erase(node));
      ++n_dropped;
    }
    TN_CHECK(edit.commit());
    return report.write("{\"dropped\": " + std::to_string(n_dropped) + "}");
  }
};

}  // namespace

TENON_PASS(drop_identity,
           DropIdentity,
           "com.acme.drop_identity",
           "removes Identity nodes",
           R"({"properties": {"limit": {"type": "integer", "default": 0, "minimum": 0,
                                        "description": "at most so many; 0 is all"}}})")

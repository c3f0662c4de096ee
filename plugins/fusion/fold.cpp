// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

namespace tenon::fusion {

class Fold {
 public:
  static Result<Fold> create(tn_ctx* ctx, const Options&) { return Fold(ctx); }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    std::vector<const Rule*> rules = fold_rules();
    std::vector<uint64_t> counts(rules.size());
    TN_CHECK(apply_rules(ctx_, graph, rules, cancel, &counts));
    return report.write(report_of(rules, counts));
  }

 private:
  explicit Fold(tn_ctx* ctx) : ctx_(ctx) {}
  tn_ctx* ctx_;
};

}  // namespace tenon::fusion

TENON_PASS(fold,
           tenon::fusion::Fold,
           "fusion.fold",
           "computes constants, removes what changes nothing and what nobody uses",
           R"({"properties": {}})")

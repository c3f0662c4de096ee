// SPDX-License-Identifier: Apache-2.0
// fusion.shapes: what a transformation needs that asks for sizes, such as a gradient. Integers that
// follow from constants and known shapes become constants, an If whose condition is one becomes its
// branch; weights stay as they are, under their names, also where one is made from another.
#include "rounds.hpp"

FUSION_DECLARE_RULE(constants)
FUSION_DECLARE_RULE(branches)

namespace tenon::fusion {
namespace {

class Shapes {
 public:
  static Result<Shapes> create(tn_ctx* ctx, const Options& options) {
    Settings settings = Settings::from(ctx, options);
    settings.integers_only = true;
    return Shapes(std::move(settings));
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    settings_.cancel = cancel.raw();
    return run_rounds(graph, settings_, {&tenon_fusion_rule_constants, &tenon_fusion_rule_branches},
                      report);
  }

 private:
  explicit Shapes(Settings settings) : settings_(std::move(settings)) {}
  Settings settings_;
};

}  // namespace
}  // namespace tenon::fusion

TENON_PASS(shapes,
           tenon::fusion::Shapes,
           "fusion.shapes",
           "computes integers that depend on constants and known shapes only",
           "{\"properties\": {" FUSION_SCOPE_OPTION ", " FUSION_BYTES_OPTION "}}")

// SPDX-License-Identifier: Apache-2.0
// "seams.average_gradients": a pass on the joint graph of a training step: each rank goes on with
// the mean of all ranks' gradients, so that ranks with equal weights keep equal weights.
#include "tenon/sdk/role/pass.hpp"

namespace tenon::test {
namespace {

struct AverageGradients {
  std::string collective, options;

  static Result<AverageGradients> create(tn_ctx*, const Options& options) {
    return AverageGradients{std::string(options.text("collective")),
                            std::string(options.text("of_collective"))};
  }
  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(graph));
    std::vector<Value> outputs = edit.graph().outputs();
    int n = 0;
    for (uint64_t i = 0; i < outputs.size(); ++i) {
      std::string name(edit.graph().output_name(i));
      if (!name.starts_with("grad/")) continue;
      TN_TRY(node, edit.add({.type = "AllReduce",
                             .inputs = {outputs[i]},
                             .attrs = {{"collective", std::string_view(collective)},
                                       {"options", std::string_view(options)}},
                             .name = cat("average/", name),
                             .domain = "seams"}));
      TN_CHECK(services.edit->set_output(edit.raw, i, node.output().id));
      ++n;
    }
    TN_CHECK(edit.commit());
    return report.write(cat("{\"averaged\": ", n, "}"));
  }
};

}  // namespace
}  // namespace tenon::test

TENON_PASS(average_gradients,
           tenon::test::AverageGradients,
           "seams.average_gradients",
           "gradients become the mean over the ranks of a collective",
           R"({"properties": {
  "collective": {"type": "string", "default": "seams.threads", "description": "its id"},
  "of_collective": {"type": "string", "default": "{}", "description": "its options, a JSON object"}}})")

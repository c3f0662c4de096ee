// SPDX-License-Identifier: Apache-2.0
// "trainer.functional": parameters become inputs, so that a model is a function of them as well.
#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "parameters.hpp"
#include "training_mode.hpp"

namespace tenon::trainer {
namespace {

class Functional {
 public:
  static Result<Functional> create(tn_ctx*, const Options& options) {
    return Functional{{options.texts("parameters"), options.texts("frozen"), true},
                      options.flag("training")};
  }

  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    TN_TRY(names, find_parameters(Graph{graph}, choice_));
    TN_TRY(edit, Edit::begin(graph));
    for (const std::string& name : names)
      TN_CHECK(input_for_constant(edit, edit.graph().find(name)).status());
    nlohmann::json key;
    if (training_) {
      TN_CHECK(to_training_mode(edit, {.stateless = true}).status());
      if (Value draws = edit.graph().find(kDropoutKey)) key = draws.name();
    }
    TN_CHECK(edit.commit());
    return report.write(nlohmann::json{{"parameters", names}, {"key", key}}.dump());
  }

  ParameterChoice choice_;
  bool training_ = false;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(functional,
           tenon::trainer::Functional,
           "trainer.functional",
           "parameters become inputs, behind those that the model has",
           R"({"properties": {
    "parameters": {"type": "array", "items": {"type": "string"}, "description": "patterns of names, nodes, operators or scopes of the parameters that become inputs; all by default"},
    "frozen": {"type": "array", "items": {"type": "string"}, "description": "patterns of parameters that stay constants"},
    "training": {"type": "boolean", "default": false, "description": "Dropout draws by one more input, dropout/key (int64[2]: seed and step), and BatchNormalization uses the statistics of the batch; its running statistics stay as they are"}}})")

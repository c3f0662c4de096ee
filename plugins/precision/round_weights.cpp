// SPDX-License-Identifier: Apache-2.0
// "precision.round_weights": parameters without a master copy: what an update gives is rounded to
// the low type, as if they were stored in it (level O3 of NVIDIA's Apex).
#include <nlohmann/json.hpp>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "redirect.hpp"
#include "scaler.hpp"

namespace tenon::precision {
namespace {

class RoundWeights {
 public:
  static Result<RoundWeights> create(tn_ctx*, const Options& options) {
    return RoundWeights{options.texts("parameters"),
                        options.text("dtype") == "float16" ? uint32_t{TN_F16} : uint32_t{TN_BF16}};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    std::vector<Value> before = edit.graph().list(TN_LIST_STATES, 0);
    std::vector<Value> after = edit.graph().list(TN_LIST_STATES, 1);
    Builder b(edit);
    size_t n_rounded = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (matched_by(parameters_, before[i].name()).empty() || before[i].dtype() != TN_F32)
        continue;
      Value low = b.op("Cast", {after[i]}, {{"to", any_dtype(dtype_)}});
      Value rounded = b.op("Cast", {low}, {{"to", any_dtype(TN_F32)}});
      TN_CHECK(b.status());
      TN_CHECK(redirect(edit, after[i], rounded, {{low.producer(), 0}}));
      ++n_rounded;
    }
    if (n_rounded == 0)
      return invalid("option parameters: expected patterns of float32 states, got none that fits");
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::json{{"parameters", n_rounded}}.dump());
  }

  std::vector<std::string> parameters_;
  uint32_t dtype_;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(round_weights,
           tenon::precision::RoundWeights,
           "precision.round_weights",
           "parameters without a master copy: rounded to the low type after each update",
           R"({
  "required": ["parameters"],
  "properties": {
    "parameters": {"type": ["array", "string"], "items": {"type": "string"},
                   "description": "patterns of states"},
    "dtype": {"type": "string", "enum": ["bfloat16", "float16"], "default": "float16",
              "description": "the low type"}}})")

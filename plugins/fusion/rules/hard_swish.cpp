// SPDX-License-Identifier: Apache-2.0
// Before:  x*clip(x + 3, 0, 6)/6 in its orders, or x*HardSigmoid(x) with alpha 1/6 and beta 1/2.
// After:   HardSwish(x).
// Needs:   the constants, each one element; nothing else uses the steps.
// Source:  Howard et al.: Searching for MobileNetV3 (2019), section 5.2.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr std::string_view kForms[] = {
    "Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))",
    "Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)",
    "Mul(x, Mul(Clip(Add(x, 3), 0, 6), 0.16666667))",
    "Mul(Mul(x, Clip(Add(x, 3), 0, 6)), 0.16666667)",
    "Mul(Div(x, 6), Clip(Add(x, 3), 0, 6))",
    "Mul(x, HardSigmoid:gate(x))",
};

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  if (!is_float(root.output().dtype())) return false;
  if (Node gate = match.node("gate")) {
    if (!is_about(gate.attr_float("alpha", 0.2), 1.0 / 6, TN_F32)) return false;
    if (!is_about(gate.attr_float("beta", 0.5), 0.5, TN_F32)) return false;
  }
  TN_TRY(made, rewriter.op("HardSwish", {match["x"]}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(hard_swish,
            "fusion.hard_swish",
            "one HardSwish for its steps",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

// SPDX-License-Identifier: Apache-2.0
// Before:  x*Sigmoid(x).
// After:   Swish(x).
// Needs:   nothing else uses the sigmoid.
// Source:  Ramachandran, Zoph, Le: Searching for Activation Functions (2017), section 4.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr std::string_view kForms[] = {"Mul(x, Sigmoid(x))"};

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  if (!is_float(root.output().dtype())) return false;
  TN_TRY(made, rewriter.op("Swish", {match["x"]}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(swish,
            "fusion.swish",
            "one Swish for a product with its sigmoid",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

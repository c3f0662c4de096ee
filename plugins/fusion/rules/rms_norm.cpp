// SPDX-License-Identifier: Apache-2.0
// Before:  x/sqrt(mean(x^2) + e), times a constant; the square as Pow(x, 2) or Mul(x, x), the
//          division as Div or as Mul by a reciprocal.
// After:   RMSNormalization(x, scale) with epsilon e.
// Needs:   the mean over the last axes in order, kept; scale has exactly their shape; nothing else
//          uses the steps.
// Source:  Zhang, Sennrich: Root Mean Square Layer Normalization (2019), equation 4.
#include "last_axes.hpp"

namespace tenon::fusion {
namespace {

#define ROOT(square) "Sqrt(Add(ReduceMean:mean(" square ", ...), #epsilon))"
#define FORMS(square)                                                                           \
  "Mul(Div(x, " ROOT(square) "), #scale)", "Mul(Mul(x, Reciprocal(" ROOT(square) ")), #scale)", \
      "Mul(Mul(x, Div(1, " ROOT(square) ")), #scale)"

constexpr std::string_view kForms[] = {FORMS("Pow(x, 2)"), FORMS("Mul(x, x)")};

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  Type type = match["x"].type();
  int64_t axis = first_axis(match.node("mean"));
  std::optional<double> epsilon = scalar_of(match["epsilon"]);
  if (axis < 0 || !epsilon || !is_float(type.dtype) ||
      !has_normed_shape(match["scale"], type, axis)) {
    return false;
  }
  TN_TRY(made,
         rewriter.op("RMSNormalization", {match["x"], match["scale"]},
                     {{"axis", axis - static_cast<int64_t>(type.rank())}, {"epsilon", *epsilon}}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(rms_norm,
            "fusion.rms_norm",
            "one RMSNormalization for its steps",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

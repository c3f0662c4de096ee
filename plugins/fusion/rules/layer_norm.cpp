// SPDX-License-Identifier: Apache-2.0
// Before:  (x - mean(x))/sqrt(mean((x - mean(x))^2) + e), times a constant, plus a constant; the
//          square as Pow(d, 2) or Mul(d, d), the division as Div or as Mul by the reciprocal.
// After:   LayerNormalization(x, scale, bias) with epsilon e.
// Needs:   both means over the last axes in order, kept; scale and bias have exactly their shape;
//          nothing else uses the steps.
// Source:  Ba, Kiros, Hinton: Layer Normalization (2016), equation 3.
#include "last_axes.hpp"

namespace tenon::fusion {
namespace {

#define CENTERED "Sub(x, ReduceMean:mean(x, ...))"
#define SQUARE_MEAN(square) "Sqrt(Add(ReduceMean:variance(" square ", ...), #epsilon))"
#define NORMED(square) "Div(" CENTERED ", " SQUARE_MEAN(square) ")"
#define NORMED_BY_RECIPROCAL(square) "Mul(" CENTERED ", Reciprocal(" SQUARE_MEAN(square) "))"
#define POWER "Pow(" CENTERED ", 2)"
#define PRODUCT "Mul(" CENTERED ", " CENTERED ")"
#define AFFINE(normed) "Add(Mul(" normed ", #scale), #bias)"

constexpr std::string_view kForms[] = {
    AFFINE(NORMED(POWER)),
    AFFINE(NORMED(PRODUCT)),
    AFFINE(NORMED_BY_RECIPROCAL(POWER)),
    AFFINE(NORMED_BY_RECIPROCAL(PRODUCT)),
};

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  Type type = match["x"].type();
  int64_t axis = first_axis(match.node("mean"));
  std::optional<double> epsilon = scalar_of(match["epsilon"]);
  if (axis < 0 || axis != first_axis(match.node("variance")) || !epsilon) return false;
  if (!is_float(type.dtype) || !has_normed_shape(match["scale"], type, axis) ||
      !has_normed_shape(match["bias"], type, axis))
    return false;
  TN_TRY(made,
         rewriter.op("LayerNormalization", {match["x"], match["scale"], match["bias"]},
                     {{"axis", axis - static_cast<int64_t>(type.rank())}, {"epsilon", *epsilon}}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(layer_norm,
            "fusion.layer_norm",
            "one LayerNormalization for its steps",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

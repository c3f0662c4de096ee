// SPDX-License-Identifier: Apache-2.0
// Before:  (x - mean(x))/sqrt(mean((x - mean(x))^2) + e), times a constant, plus a constant; the
//          square as Pow(d, 2) or Mul(d, d), the division as Div or as Mul by the reciprocal.
// After:   LayerNormalization(x, scale, bias) with epsilon e.
// Needs:   both means over the last axes in order, kept; scale and bias have exactly their shape;
//          nothing else uses the steps.
// Source:  Ba, Kiros, Hinton: Layer Normalization (2016), equation 3.
#include <algorithm>

#include "rewriter.hpp"

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

// The first of the last axes that a kept mean goes over; -1 where it goes over others.
int64_t first_axis(Node mean) {
  Type type = mean.input(0).type();
  std::optional<std::vector<int64_t>> axes = constant_ints(mean.input(1));
  if (!axes || !type.ranked || axes->empty() || mean.attr_int("keepdims", 1) != 1) return -1;
  auto rank = static_cast<int64_t>(type.rank());
  for (int64_t& axis : *axes)
    axis += axis < 0 ? rank : 0;
  std::sort(axes->begin(), axes->end());
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<int64_t>(axes->size() - i)) return -1;
  }
  return axes->front();
}

// The shape of the normalised axes, which scale and bias must have.
bool has_normed_shape(Value value, const Type& type, int64_t axis) {
  Type own = value.type();
  std::vector<int64_t> wanted(type.dims.begin() + axis, type.dims.end());
  return own.dtype == type.dtype && own.dims == wanted;
}

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

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk_patterns(graph, settings, kForms, replace);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(layer_norm,
            "fusion.layer_norm",
            "one LayerNormalization for its steps",
            tenon::fusion::run)

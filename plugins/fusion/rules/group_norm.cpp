// SPDX-License-Identifier: Apache-2.0
// Before:  x with one axis for each group of channels, normalized over what is left of each, in its
//          shape again, times a constant, plus a constant; as exporters write it for opsets in
//          which GroupNormalization has no scale for each channel.
// After:   GroupNormalization(x, scale, bias) with so many groups.
// Needs:   scale and bias of the inner normalization are 1 and 0; those behind it have one number
//          for each channel, axis 1 of x; nothing else uses the steps.
// Source:  Wu, He: Group Normalization (2018), equations 1 to 3 and 7.
#include <algorithm>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr std::string_view kForms[] = {
    "Add(Mul(Reshape(InstanceNormalization:norm(Reshape:grouped(x, shape), #ones, #zeros), back), "
    "#scale), #bias)",
};

bool are_all(Value value, double wanted) {
  std::optional<std::vector<double>> numbers = numbers_of(value);
  return numbers &&
         std::ranges::all_of(*numbers, [wanted](double number) { return number == wanted; });
}

bool same_size(const Type& a, const Type& b, size_t axis) {
  if (a.dims[axis] >= 0 || b.dims[axis] >= 0) return a.dims[axis] == b.dims[axis];
  return !a.symbols.empty() && !b.symbols.empty() && !a.symbols[axis].empty() &&
         a.symbols[axis] == b.symbols[axis];
}

bool same_shape(const Type& a, const Type& b) {
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return false;
  for (size_t axis = 0; axis < a.rank(); ++axis)
    if (!same_size(a, b, axis)) return false;
  return true;
}

// How many groups of whole channels the view makes; 0: it does something else.
int64_t groups_of(const Type& whole, const Type& grouped) {
  if (!whole.ranked || !grouped.ranked || whole.rank() < 3 || grouped.rank() < 3) return 0;
  const int64_t channels = whole.dims[1], groups = grouped.dims[1];
  const bool fits = channels > 0 && groups > 0 && channels % groups == 0;
  return fits && same_size(whole, grouped, 0) ? groups : 0;
}

// A number for each channel of x, as a vector; nothing where the constant is another one.
std::optional<std::vector<double>> by_channel(Value value, const Type& x) {
  const std::vector<int64_t> dims = value.type().dims;
  const size_t channels_at = dims.size() - x.rank() + 1;
  if (dims.size() + 1 < x.rank() || dims.size() > x.rank()) return std::nullopt;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] != (axis == channels_at ? x.dims[1] : 1)) return std::nullopt;
  return numbers_of(value);
}

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  const Type type = match["x"].type();
  const Node norm = match.node("norm");
  const int64_t groups = groups_of(type, match.node("grouped").output().type());
  if (!groups || !is_float(type.dtype) || !same_shape(type, root.output().type())) return false;
  if (!are_all(match["ones"], 1) || !are_all(match["zeros"], 0)) return false;
  const auto scale = by_channel(match["scale"], type), bias = by_channel(match["bias"], type);
  if (!scale || !bias) return false;
  const std::vector<int64_t> channels{type.dims[1]};
  TN_TRY(scales, rewriter.numbers(type.dtype, channels, *scale, match["scale"].name()));
  TN_TRY(shifts, rewriter.numbers(type.dtype, channels, *bias, match["bias"].name()));
  TN_TRY(made,
         rewriter.op("GroupNormalization", {match["x"], scales, shifts},
                     {{"num_groups", groups}, {"epsilon", norm.attr_float("epsilon", 1e-5)}}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(group_norm,
            "fusion.group_norm",
            "one GroupNormalization for its steps",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

// SPDX-License-Identifier: Apache-2.0
// Before:  MatMul(Softmax(f*MatMul(q, k')), v), the factor f as Mul or Div or none, with or without
//          a mask that is added before the softmax; q, k, v of four axes.
// After:   Attention(q, k, v, mask) with scale f.
// Needs:   k' is Transpose(k) of the last two axes; softmax over the last axis; q, k and v have the
//          same heads; the mask has all keys (Attention hides those that a mask lacks, where Add
//          repeats it); nothing else uses the steps. Runs only when it is named: not every backend
//          has an Attention, and quantizers see its products one by one. A query that no key may
//          answer gets zeros, where the steps give NaN.
// Source:  Vaswani et al.: Attention Is All You Need (2017), section 3.2.1.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

#define SCORES "MatMul(q, Transpose:turn(k))"
#define ATTEND(scores) "MatMul(Softmax:softmax(" scores "), v)"

constexpr std::string_view kForms[] = {
    ATTEND("Mul(" SCORES ", #factor)"),
    ATTEND("Add(Mul(" SCORES ", #factor), mask)"),
    ATTEND("Div(" SCORES ", #divisor)"),
    ATTEND("Add(Div(" SCORES ", #divisor), mask)"),
    ATTEND(SCORES),
    ATTEND("Add(" SCORES ", mask)"),
};

std::optional<double> factor_of(const Match& match) {
  if (match["factor"]) return scalar_of(match["factor"]);
  if (!match["divisor"]) return 1.0;
  std::optional<double> divisor = scalar_of(match["divisor"]);
  if (!divisor || *divisor == 0) return std::nullopt;
  return 1 / *divisor;
}

bool are_heads(const Type& q, const Type& k, const Type& v) {
  bool are_static = q.is_static() && k.is_static() && v.is_static();
  return are_static && q.dims.size() == 4 && k.dims.size() == 4 && v.dims.size() == 4 &&
         q.dims[1] == k.dims[1] && q.dims[1] == v.dims[1] && q.dims[0] == k.dims[0] &&
         q.dims[0] == v.dims[0];
}

bool is_mask(const Type& mask, const Type& q, const Type& k) {
  return mask.dtype == q.dtype && mask.is_static() && mask.rank() >= 1 && mask.rank() <= 4 &&
         mask.dims.back() == k.dims[2];
}

Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  Value q = match["q"], k = match["k"], v = match["v"], mask = match["mask"];
  std::optional<double> factor = factor_of(match);
  int64_t axis = match.node("softmax").attr_int("axis", -1);
  bool turns = match.node("turn").attr_ints("perm") == std::vector<int64_t>{0, 1, 3, 2};
  if (!factor || !turns || (axis != -1 && axis != 3)) return false;
  if (!is_float(q.dtype()) || !are_heads(q.type(), k.type(), v.type())) return false;
  if (mask && !is_mask(mask.type(), q.type(), k.type())) return false;
  std::vector<Value> inputs{q, k, v};
  if (mask) inputs.push_back(mask);
  TN_TRY(made, rewriter.op("Attention", inputs, {{"scale", *factor}}));
  return rewriter.replace(root, made);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(attention,
            "fusion.attention",
            "one Attention for its products and softmax",
            (tenon::fusion::run_patterns<tenon::fusion::kForms, tenon::fusion::replace>))

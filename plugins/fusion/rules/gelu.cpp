// SPDX-License-Identifier: Apache-2.0
// Before:  x*0.5*(1 + erf(x/sqrt(2))) or x*0.5*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3))), with its
//          factors in any order.
// After:   Gelu(x), with approximate = "tanh" for the second.
// Needs:   the constants, each one element; nothing else uses the steps.
// Source:  Hendrycks, Gimpel: Gaussian Error Linear Units (2016), section 2.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

// INNER stands for the steps up to 1 + erf or 1 + tanh.
constexpr std::string_view kOuter[] = {
    "Mul(Mul(x, INNER), 0.5)", "Mul(Mul(x, 0.5), INNER)", "Mul(x, Mul(INNER, 0.5))",
    "Div(Mul(x, INNER), 2)",   "Mul(Div(x, 2), INNER)",
};
constexpr std::string_view kErf[] = {
    "Add(Erf(Div(x, 1.4142135)), 1)",
    "Add(Erf(Mul(x, 0.70710678)), 1)",
};
constexpr std::string_view kTanh[] = {
    "Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1)",
    "Add(Tanh(Mul(Add(x, Mul(Mul(Mul(x, x), x), 0.044715)), 0.79788456)), 1)",
    "Add(Tanh(Mul(Add(x, Mul(Mul(Mul(x, 0.044715), x), x)), 0.79788456)), 1)",
    "Add(Tanh(Mul(Mul(Add(Mul(Mul(x, x), 0.044715), 1), x), 0.79788456)), 1)",
    "Add(Tanh(Mul(Add(Mul(Mul(x, x), 0.044715), 1), Mul(x, 0.79788456))), 1)",
};

std::vector<std::string> forms(std::span<const std::string_view> inner) {
  std::vector<std::string> out;
  for (std::string_view outer : kOuter) {
    for (std::string_view step : inner) {
      size_t at = outer.find("INNER");
      out.push_back(cat(outer.substr(0, at), step, outer.substr(at + 5)));
    }
  }
  return out;
}

template <bool kIsTanh>
Result<bool> replace(Rewriter& rewriter, Node root, const Match& match) {
  if (!is_float(root.output().dtype())) return false;
  std::vector<Attr> attrs;
  if (kIsTanh) attrs.emplace_back("approximate", "tanh");
  TN_TRY(made, rewriter.op("Gelu", {match["x"]}, attrs));
  return rewriter.replace(root, made);
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  static const Patterns erf(forms(kErf)), tanh(forms(kTanh));
  TN_TRY(exact, walk_patterns(graph, settings, erf, replace<false>));
  TN_TRY(close, walk_patterns(graph, settings, tanh, replace<true>));
  return exact + close;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(gelu, "fusion.gelu", "one Gelu for its steps", tenon::fusion::run)

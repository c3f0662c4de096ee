// SPDX-License-Identifier: Apache-2.0
// The activations that ONNX's recurrent operators name.
#include "activations.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace tenon::ops {
namespace {

struct Named {
  std::string_view name;
  const char* op;
  double (*f)(double x, double alpha, double beta);
  int takes = 0;  // 1: alpha; 2: alpha and beta
  double alpha = 0, beta = 0;
};
constexpr Named kNamed[] = {
    {"affine", "", [](double x, double a, double b) { return a * x + b; }, 2, 1, 0},
    {"elu", "Elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, 1, 1},
    {"hardsigmoid", "HardSigmoid",
     [](double x, double a, double b) { return std::min(std::max(a * x + b, 0.0), 1.0); }, 2, 0.2,
     0.5},
    {"leakyrelu", "LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; }, 1,
     0.01},
    {"relu", "Relu", [](double x, double, double) { return std::max(x, 0.0); }},
    {"scaledtanh", "Tanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, 2, 1,
     1},
    {"sigmoid", "Sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", "Softplus", [](double x, double, double) { return std::log1p(std::exp(x)); }},
    {"softsign", "Softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"tanh", "Tanh", [](double x, double, double) { return std::tanh(x); }},
    {"thresholdedrelu", "ThresholdedRelu", [](double x, double a, double) { return x > a ? x : 0; },
     1, 1},
};

}  // namespace

Value applied(Builder& b, const Activation& f, Value x) {
  std::string_view op = f.op;
  auto number = [&](double value) { return b.number(value, x.dtype()); };
  if (op.empty()) return b.add(b.mul(x, number(f.alpha)), number(f.beta));
  if (op == "Tanh" && f.takes == 2)
    return b.mul(b.op("Tanh", {b.mul(x, number(f.beta))}), number(f.alpha));
  std::vector<Attr> attrs;
  if (f.takes >= 1) attrs.emplace_back("alpha", f.alpha);
  if (f.takes >= 2) attrs.emplace_back("beta", f.beta);
  return b.op(op, {x}, attrs);
}

Result<std::vector<Activation>> activations_of(Node node,
                                               const std::vector<std::string>& defaults) {
  std::vector<std::string> names = texts_of(node.attr("activations"));
  if (names.empty()) names = defaults;
  if (names.size() != defaults.size())
    return invalid(cat("activations: expected ", defaults.size(), " names, got ", names.size()));
  std::vector<double> alphas = floats_of(node.attr("activation_alpha"));
  std::vector<double> betas = floats_of(node.attr("activation_beta"));
  size_t next_alpha = 0, next_beta = 0;  // consumed by those that take them, in order
  std::vector<Activation> out;
  for (const std::string& name : names) {
    std::string lower = name;
    for (char& c : lower)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const Named* at = std::find_if(std::begin(kNamed), std::end(kNamed),
                                   [&](const Named& one) { return one.name == lower; });
    if (at == std::end(kNamed))
      return invalid(
          cat("activations: expected Affine, Elu, HardSigmoid, LeakyRelu, Relu, "
              "ScaledTanh, Sigmoid, Softplus, Softsign, Tanh or ThresholdedRelu, got '",
              name, "'"));
    Activation made{at->f, at->alpha, at->beta, at->op, at->takes};
    if (at->takes >= 1 && next_alpha < alphas.size()) made.alpha = alphas[next_alpha++];
    if (at->takes >= 2 && next_beta < betas.size()) made.beta = betas[next_beta++];
    out.push_back(made);
  }
  return out;
}

}  // namespace tenon::ops

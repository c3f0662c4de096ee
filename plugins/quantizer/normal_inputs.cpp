// SPDX-License-Identifier: Apache-2.0
#include "normal_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "known_numbers.hpp"
#include "layer_bias.hpp"
#include "pointwise_values.hpp"

namespace tenon::quantizer {
namespace {

// Even steps within six deviations: the trapezoidal rule is nearly exact on what is smooth, and
// within 1e-5 of a deviation where a Relu bends.
constexpr int64_t kPoints = 513;
constexpr double kReach = 6;

bool is_vector_of(Value v, int64_t n) {
  return v && v.is_constant() && v.dtype() == TN_F32 && v.type().dims == std::vector<int64_t>{n};
}

struct Chain {
  Node norm;
  std::vector<Node> nodes;  // pointwise, in order
};

Chain chain_to(Value value, std::string* why) {
  Chain out;
  for (Node node = value.producer();; node = node.input(0).producer()) {
    if (!node) {
      *why = "no BatchNormalization is in front of it";
      return out;
    }
    if (node.is("BatchNormalization")) {
      int64_t n =
          node.input(1) && node.input(1).type().rank() == 1 ? node.input(1).type().dims[0] : -1;
      if (node.attr_int("training_mode") == 0 && is_vector_of(node.input(1), n) &&
          is_vector_of(node.input(2), n)) {
        out.norm = node;
      } else {
        *why = cat(node.name(), " has no constant scale and bias");
      }
      return out;
    }
    if (!is_pointwise_of_one(node)) {
      *why = cat(node.name(), " (", node.type(), ") is between it and a BatchNormalization");
      return out;
    }
    out.nodes.insert(out.nodes.begin(), node);
  }
}

// What the bias of the layer in front of the normalization is when this is folded into it.
std::vector<double> folded_bias(Node norm, Node layer) {
  std::vector<std::vector<double>> of;
  for (uint64_t i : {1, 2, 3, 4})
    of.push_back(numbers_of(norm.input(i)));
  const auto& [scale, bias, mean, variance] = std::tie(of[0], of[1], of[2], of[3]);
  if (mean.size() != scale.size() || variance.size() != scale.size()) return {};
  std::vector<double> own = numbers_of(bias_of(layer, role_of(layer)).numbers);
  if (own.empty()) own.assign(scale.size(), 0);
  if (own.size() != scale.size()) return {};
  const double epsilon = norm.attr_float("epsilon", 1e-5);
  for (size_t c = 0; c < own.size(); ++c)
    own[c] = (own[c] - mean[c]) * scale[c] / std::sqrt(variance[c] + epsilon) + bias[c];
  return own;
}

Node node_named(Graph graph, std::string_view name) {
  for (Node node : graph.nodes())
    if (node.name() == name) return node;
  return {};
}

}  // namespace

void follow_factors(Graph folded, Value value, std::vector<double>* means, std::string* why) {
  constexpr double kSame = 1e-5, kLeast = 1e-3;  // of the largest bias
  const Node norm = chain_to(value, why).norm;
  const Node layer = norm ? norm.input(0).producer() : Node();
  const Node now = layer ? node_named(folded, layer.name()) : Node();
  if (!now || node_named(folded, norm.name()) || role_of(now).kind != Kind::kCompute) return;
  const std::vector<double> wanted = folded_bias(norm, layer);
  const std::vector<double> found = numbers_of(bias_of(now, role_of(now)).numbers);
  if (found.size() != means->size() || wanted.size() != means->size()) return;
  double most = 0;
  for (double bias : wanted)
    most = std::max(most, std::abs(bias));
  for (size_t c = 0; c < means->size(); ++c) {
    if (std::abs(found[c] - wanted[c]) <= kSame * most) continue;
    const double factor = wanted[c] / found[c];
    if (std::abs(wanted[c]) < kLeast * most || !(factor > 0) || !std::isfinite(factor)) {
      *why = cat("the bias of ", now.name(), " does not say how its channels were scaled");
      return;
    }
    (*means)[c] /= factor;
  }
}

Result<std::vector<double>> channel_means(tn_ctx* ctx, Value value, std::string* why) {
  Chain chain = chain_to(value, why);
  if (!chain.norm) return std::vector<double>();
  Tensor scale = chain.norm.input(1).constant(), bias = chain.norm.input(2).constant();
  const int64_t channels = element_count(scale.dl());
  std::vector<double> density;
  std::vector<float> points;
  double whole = 0;
  for (int64_t k = 0; k < kPoints; ++k) {
    double z = kReach * (2 * static_cast<double>(k) / static_cast<double>(kPoints - 1) - 1);
    density.push_back(std::exp(-z * z / 2));
    whole += density.back();
    for (int64_t c = 0; c < channels; ++c)
      points.push_back(
          static_cast<float>(static_cast<double>(bias.data<float>()[c]) +
                             std::abs(static_cast<double>(scale.data<float>()[c])) * z));
  }
  std::vector<int64_t> shape(std::max<size_t>(chain.norm.output().type().rank(), 2), 1);
  shape[0] = kPoints;
  shape[1] = channels;
  TN_TRY(made, values_at(ctx, chain.nodes, points, shape));
  if (element_count(made.dl()) != kPoints * channels || dtype_of(made.dl()) != TN_F32) {
    *why = "what is between it and its BatchNormalization does not keep channels";
    return std::vector<double>();
  }
  std::vector<double> means(static_cast<size_t>(channels), 0);
  for (int64_t k = 0; k < kPoints; ++k)
    for (int64_t c = 0; c < channels; ++c)
      means[static_cast<size_t>(c)] += density[static_cast<size_t>(k)] / whole *
                                       static_cast<double>(made.data<float>()[k * channels + c]);
  return means;
}

}  // namespace tenon::quantizer

// SPDX-License-Identifier: Apache-2.0
#include "epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/sdk/backend/epilogue.hpp"

#include "handler.hpp"
#include "softmax_front.hpp"

namespace tenon::onednn {
namespace {

struct BinaryRow {
  const char* op;
  dnnl::algorithm algorithm;
  bool commutes;
};
// A sum with quantized values is taken in their steps (post_ops.cpp), which must not overflow.
constexpr float kLeastStep = 0x1p-64F;

constexpr BinaryRow kBinaryRows[] = {
    {"Add", dnnl::algorithm::binary_add, true},  {"Mul", dnnl::algorithm::binary_mul, true},
    {"Sub", dnnl::algorithm::binary_sub, false}, {"Div", dnnl::algorithm::binary_div, false},
    {"Max", dnnl::algorithm::binary_max, true},  {"Min", dnnl::algorithm::binary_min, true},
};

// The node as one that combines the result so far with something that can be read now.
std::optional<EpilogueNode> find_binary(Lowering& lowering, const backend::EpilogueOp& matched) {
  const Node& node = lowering.graph().nodes[matched.node];
  const BinaryRow* row = std::find_if(std::begin(kBinaryRows), std::end(kBinaryRows),
                                      [&](const BinaryRow& r) { return node.op == r.op; });
  if (row == std::end(kBinaryRows) || matched.other == kNone) return std::nullopt;
  if (!matched.is_first && !row->commutes) return std::nullopt;
  if (!ensure_available(lowering, matched.other)) return std::nullopt;
  const View& view = lowering.view(matched.other);
  if (view.channels != nullptr) return std::nullopt;
  if (view.is_quantized()) {
    bool can_rescale =
        (row->algorithm == dnnl::algorithm::binary_add && view.quant.scale >= kLeastStep) ||
        (row->algorithm == dnnl::algorithm::binary_mul && view.quant.zero_point == 0);
    if (!can_rescale) return std::nullopt;
  }
  return EpilogueNode{matched.node, std::nullopt, row->algorithm, matched.other};
}

// x * Sigmoid(x), whose first node reads x and whose second reads both.
std::optional<EpilogueNode> find_swish(const Graph& graph, int value, std::vector<int>* nodes) {
  const std::vector<int>& users = graph.values[value].users;
  if (users.size() != 2) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    int gate = users[i];
    int product = users[1 - i];
    if (graph.nodes[gate].op != "Sigmoid" || graph.nodes[product].op != "Mul") continue;
    if (graph.only_user(graph.nodes[gate].outputs[0]) != product) continue;
    *nodes = {gate, product};
    return EpilogueNode{product, Eltwise{dnnl::algorithm::eltwise_swish, 1, 0}, {}, kNone};
  }
  return std::nullopt;
}

bool is_known_f32(const Lowering& lowering, int value) {
  const Value& constant = lowering.graph().values[value];
  return constant.data != nullptr && constant.type == ElementType::kF32 &&
         !lowering.view(value).is_quantized();
}

// A BatchNormalization of known numbers behind a Conv with known weights, in f32 or in 8 bits.
bool is_foldable_norm(const Lowering& lowering, int producer, const Node& norm) {
  const Graph& graph = lowering.graph();
  if (norm.op != "BatchNormalization" || norm.integer("training_mode", 0) != 0) return false;
  const Node& conv = graph.nodes[producer];
  if (conv.op != "Conv") return false;
  auto is_plain = [&](int value) {
    return value != kNone && graph.values[value].data != nullptr &&
           graph.values[value].type == ElementType::kF32;
  };
  const View& weights = lowering.view(conv.inputs[1]);
  const bool are_quantized = weights.is_quantized() && lowering.is_constant_view(weights);
  bool is_known = (are_quantized || is_plain(conv.inputs[1])) &&
                  (conv.input(2) == kNone || is_plain(conv.inputs[2]));
  for (int i = 1; i <= 4; ++i)
    is_known = is_known && is_plain(norm.input(static_cast<size_t>(i)));
  return is_known;
}

}  // namespace

ChannelNorm channel_norm(Lowering& lowering, int norm) {
  const Node& node = lowering.graph().nodes[norm];
  auto numbers = [&](int input) { return lowering.constant_floats(node.inputs[input]); };
  const std::vector<float> gamma = numbers(1), beta = numbers(2), mean = numbers(3);
  const std::vector<float> variance = numbers(4);
  const double epsilon = node.real("epsilon", 1e-5);
  ChannelNorm made;
  for (size_t i = 0; i < gamma.size(); ++i) {
    made.factor.push_back(double{gamma[i]} / std::sqrt(double{variance[i]} + epsilon));
    made.shift.push_back(double{beta[i]} - double{mean[i]} * made.factor[i]);
  }
  return made;
}

namespace {

struct Absorber {
  Lowering& lowering;
  const Graph& graph;
  int channel_axis;
  Epilogue epilogue;

  void take(EpilogueNode op, std::vector<int> nodes) {
    epilogue.ops.push_back(op);
    epilogue.nodes.insert(epilogue.nodes.end(), nodes.begin(), nodes.end());
    epilogue.result = graph.nodes[op.node].outputs[0];
  }

  bool step() {
    const Value& value = graph.values[epilogue.result];
    if (value.n_outputs > 0 || epilogue.quant) return false;
    if (find_softmax_front(lowering, epilogue.result)) return false;
    std::vector<int> nodes;
    if (std::optional<EpilogueNode> op = find_swish(graph, epilogue.result, &nodes)) {
      take(*op, nodes);
      return true;
    }
    int user = graph.only_user(epilogue.result);
    if (user == kNone || lowering.is_done(user)) return false;
    const Node& node = graph.nodes[user];
    if (node.op == "QuantizeLinear") return quantize(user, node);
    if (epilogue.nodes.empty() && is_foldable_norm(lowering, value.producer, node)) {
      epilogue.norm = user;
      epilogue.nodes.push_back(user);
      epilogue.result = node.outputs[0];
      return true;
    }
    if (std::optional<Eltwise> eltwise = find_eltwise(graph, node)) {
      take({user, eltwise, {}, kNone}, {user});
      return true;
    }
    backend::EpilogueOp matched;
    const auto axis = static_cast<size_t>(channel_axis);
    if (!backend::match_epilogue(graph, user, epilogue.result, axis, &matched)) return false;
    std::optional<EpilogueNode> op = find_binary(lowering, matched);
    if (!op || epilogue.ops.size() >= 8) return false;
    bool is_bias = matched.kind == backend::EpilogueOp::Kind::kBias && epilogue.ops.empty() &&
                   epilogue.bias == kNone && epilogue.norm == kNone &&
                   is_known_f32(lowering, op->other);
    if (is_bias) {
      epilogue.bias = op->other;
      epilogue.nodes.push_back(user);
      epilogue.result = node.outputs[0];
      return true;
    }
    take(*op, {user});
    return true;
  }

  // Ends the chain: what a file rounds and saturates here is rounded and saturated here. Kernels
  // count in steps of the result, in which a bias must not be infinite.
  bool quantize(int user, const Node& node) {
    constexpr float kLeastScale = 1e-30F;
    std::optional<kernels::Quant> quant = tensor_quant(lowering, node);
    if (!quant || !(quant->scale >= kLeastScale && std::isfinite(quant->scale))) return false;
    epilogue.nodes.push_back(user);
    epilogue.result = node.outputs[0];
    epilogue.quant = quant;
    epilogue.quant_type = graph.values[epilogue.result].type;
    take_bounds();
    return false;
  }

  // Bounds between two roundings to the same quantized values: rounding never falls where its
  // argument grows and leaves quantized values as they are, so the bounds may as well come first,
  // and one rounding is enough. For anything else behind a QuantizeLinear its rounding matters.
  void take_bounds() {
    Epilogue bounded = epilogue;
    auto next = [&](const char* op) {
      int user = graph.only_user(bounded.result);
      bool fits = user != kNone && !lowering.is_done(user) && graph.nodes[user].op == op;
      std::optional<kernels::Quant> quant =
          fits ? tensor_quant(lowering, graph.nodes[user]) : std::nullopt;
      if (!quant || !is_same(*quant, *epilogue.quant)) return false;
      bounded.nodes.push_back(user);
      bounded.result = graph.nodes[user].outputs[0];
      return true;
    };
    if (!next("DequantizeLinear")) return;
    for (int user = graph.only_user(bounded.result); user != kNone && !lowering.is_done(user);
         user = graph.only_user(bounded.result)) {
      std::optional<Eltwise> eltwise = find_eltwise(graph, graph.nodes[user]);
      EpilogueNode op{user, eltwise, {}, kNone};
      if (!eltwise || !is_bounds(op)) break;
      bounded.ops.push_back(op);
      bounded.nodes.push_back(user);
      bounded.result = graph.nodes[user].outputs[0];
    }
    bool is_more = bounded.ops.size() > epilogue.ops.size() && next("QuantizeLinear");
    if (is_more && graph.values[bounded.result].type == epilogue.quant_type) epilogue = bounded;
  }
};

}  // namespace

std::optional<kernels::Quant> tensor_quant(const Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  int scale = node.input(1);
  int zero = node.input(2);
  if (scale == kNone || graph.values[scale].data == nullptr) return std::nullopt;
  if (graph.values[scale].type != ElementType::kF32 || graph.values[scale].count() != 1) {
    return std::nullopt;
  }
  kernels::Quant quant{*static_cast<const float*>(graph.values[scale].data), 0};
  if (zero != kNone) {
    if (graph.values[zero].data == nullptr) return std::nullopt;
    quant.zero_point = static_cast<int32_t>(lowering.constant_integers(zero)[0]);
  }
  return quant;
}

int only_quantize(const Lowering& lowering, int value) {
  int user = lowering.graph().only_user(value);
  if (user == kNone || lowering.is_done(user)) return kNone;
  const Node& node = lowering.graph().nodes[user];
  bool is_quantize = node.op == "QuantizeLinear" && tensor_quant(lowering, node).has_value();
  return is_quantize ? user : kNone;
}

bool has_known_bias(const Lowering& lowering, int bias) {
  if (bias == kNone) return true;
  if (!lowering.is_available(bias)) return false;
  const View& view = lowering.view(bias);
  return lowering.is_constant_view(view) && is_row_major(view) &&
         (view.is_quantized() || view.type == ElementType::kF32);
}

const float* known_bias(Lowering& lowering, int bias) {
  if (bias == kNone) return nullptr;
  const View found = lowering.view(bias);
  const View real = found.is_quantized() ? lowering.dequantized_constant(found) : found;
  return static_cast<const float*>(lowering.constant_data(real));
}

bool is_bounds(const EpilogueNode& op) {
  if (!op.eltwise) return false;
  bool is_relu = op.eltwise->algorithm == dnnl::algorithm::eltwise_relu && op.eltwise->alpha == 0;
  return is_relu || op.eltwise->algorithm == dnnl::algorithm::eltwise_clip;
}

std::pair<float, float> bounds_of(const EpilogueNode& op) {
  bool is_relu = op.eltwise->algorithm == dnnl::algorithm::eltwise_relu;
  if (is_relu) return {0.0F, std::numeric_limits<float>::infinity()};
  return {std::min(op.eltwise->alpha, op.eltwise->beta), op.eltwise->beta};  // as ONNX's Clip
}

bool ensure_available(Lowering& lowering, int value, std::span<const std::string_view> views) {
  if (lowering.is_available(value)) return true;
  int producer = lowering.graph().values[value].producer;
  if (producer == kNone || lowering.is_done(producer)) return false;
  const Node& node = lowering.graph().nodes[producer];
  const bool is_view = std::ranges::find(views, node.op) != views.end();
  if (node.op != "DequantizeLinear" && node.op != "Reshape" && !is_view) return false;
  if (!is_view) views = {};
  for (int input : node.inputs) {
    if (input != kNone && !ensure_available(lowering, input, views)) return false;
  }
  lowering.mark_done(producer);
  find_handler(node.op).lower(lowering, producer);
  return lowering.is_available(value);
}

Epilogue empty_epilogue(const Lowering& lowering, int node) {
  Epilogue epilogue;
  epilogue.result = lowering.graph().nodes[node].outputs[0];
  return epilogue;
}

Epilogue find_epilogue(Lowering& lowering, int node, int channel_axis) {
  Absorber absorber{lowering, lowering.graph(), channel_axis, empty_epilogue(lowering, node)};
  while (absorber.step()) {
  }
  return absorber.epilogue;
}

Epilogue find_epilogue_with_bias(Lowering& lowering, int node, int channel_axis) {
  Epilogue epilogue = find_epilogue(lowering, node, channel_axis);
  if (epilogue.bias == kNone) return epilogue;
  epilogue.ops.insert(epilogue.ops.begin(),
                      EpilogueNode{epilogue.nodes.front(), std::nullopt,
                                   dnnl::algorithm::binary_add, epilogue.bias});
  epilogue.bias = kNone;
  return epilogue;
}

void mark_absorbed(Lowering& lowering, const Epilogue& epilogue) {
  for (int node : epilogue.nodes)
    lowering.mark_done(node);
}

}  // namespace tenon::onednn

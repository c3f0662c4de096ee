// SPDX-License-Identifier: Apache-2.0
#include "channel_scales.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tenon/sdk/backend/program.hpp"

namespace tenon::onednn {
namespace {

class Moving {
 public:
  explicit Moving(Graph& graph) : graph_(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "QuantizeLinear") find(static_cast<int>(i));
    if (!quantizes_.empty()) rebuild();
  }

 private:
  const Value& value(int i) const { return graph_.values[static_cast<size_t>(i)]; }
  const Node& node(int i) const { return graph_.nodes[static_cast<size_t>(i)]; }
  const float* floats(int i) const { return static_cast<const float*>(value(i).data); }

  // One scale for each channel, all zero points the same.
  bool has_channel_scales(const Node& node) const {
    const Dims& dims = value(node.inputs[0]).dims;
    const Value& scale = value(node.inputs[1]);
    if (dims.size() < 3 || node.integer("block_size", 0) != 0) return false;
    if (positive_axis(node.integer("axis", 1), dims.size()) != 1) return false;
    const bool is_known = scale.data != nullptr && scale.type == ElementType::kF32;
    if (!is_known || scale.dims != Dims{dims[1]} || dims[1] < 2) return false;
    const auto* first = static_cast<const float*>(scale.data);
    const bool are_usual = std::all_of(first, first + scale.count(), [](float s) {
      return std::isnormal(s) && s > 0 && std::isnormal(1 / s);
    });
    return are_usual && has_one_zero(node);
  }

  bool has_one_zero(const Node& node) const {
    if (node.input(2) == kNone) return true;
    const Value& zero = value(node.inputs[2]);
    const auto* bytes = static_cast<const int8_t*>(zero.data);
    return bytes != nullptr && kernels::element_bytes(zero.type) == 1 &&
           std::equal(bytes + 1, bytes + zero.count(), bytes);
  }

  bool is_same_constant(int a, int b) const {
    if (a == b) return true;
    if (a == kNone || b == kNone) return false;
    const Value &left = value(a), &right = value(b);
    return left.data != nullptr && right.data != nullptr && left.type == right.type &&
           left.dims == right.dims &&
           std::memcmp(left.data, right.data, static_cast<size_t>(left.bytes())) == 0;
  }

  bool undoes(const Node& back, const Node& quantize) const {
    return back.op == "DequantizeLinear" && has_channel_scales(back) &&
           is_same_constant(back.inputs[1], quantize.inputs[1]) &&
           is_same_constant(back.input(2), quantize.input(2));
  }

  // A depthwise convolution of the value with known 8-bit weights.
  bool is_depthwise(const Node& conv, int source) const {
    if (conv.op != "Conv" || conv.inputs[0] != source || conv.inputs[1] == source) return false;
    const Dims& weights = value(conv.inputs[1]).dims;
    const int64_t channels = value(source).dims[1];
    if (conv.integer("group", 1) != channels || weights[0] != channels || weights[1] != 1)
      return false;
    const int maker = value(conv.inputs[1]).producer;
    return maker != kNone && has_weight_scales(node(maker), channels);
  }

  bool has_weight_scales(const Node& back, int64_t channels) const {
    if (back.op != "DequantizeLinear" || back.integer("block_size", 0) != 0) return false;
    const Value &stored = value(back.inputs[0]), &scale = value(back.inputs[1]);
    const bool are_known = stored.data != nullptr && stored.type == ElementType::kS8 &&
                           scale.data != nullptr && scale.type == ElementType::kF32;
    const bool fits =
        scale.count() == 1 || (scale.dims == Dims{channels} && back.integer("axis", 1) == 0);
    if (!are_known || !fits) return false;
    return back.input(2) == kNone || holds_zeros(value(back.inputs[2]));
  }

  void find(int index) {
    const Node& quantize = node(index);
    if (!has_channel_scales(quantize)) return;
    std::set<int> backs, convs;
    const Value& quantized = value(quantize.outputs[0]);
    if (quantized.n_outputs > 0 || quantized.users.empty()) return;
    for (int back : quantized.users) {
      if (!undoes(node(back), quantize)) return;
      const Value& real = value(node(back).outputs[0]);
      if (real.n_outputs > 0) return;
      for (int conv : real.users) {
        if (!is_depthwise(node(conv), node(back).outputs[0])) return;
        convs.insert(conv);
      }
      backs.insert(back);
    }
    quantizes_.insert(index);
    backs_.insert(backs.begin(), backs.end());
    for (int conv : convs)
      scales_of_[conv] = quantize.inputs[1];
  }

  int constant(const std::string& name, std::vector<float> numbers, const Dims& dims) {
    auto kept = std::make_shared<std::vector<float>>(std::move(numbers));
    return add({kept, kept->data()}, name, ElementType::kF32, dims);
  }

  int add(std::shared_ptr<const void> kept,
          const std::string& name,
          ElementType type,
          const Dims& dims) {
    Value made;
    made.name = name;
    made.type = type;
    made.dims = dims;
    made.data = kept.get();
    made.keeper = std::move(kept);
    return graph_.add_value(std::move(made));
  }

  // The scale 1, and one zero point.
  void use_steps(Node* node) {
    node->inputs[1] = constant(node->name + "/step", {1.0F}, {});
    if (node->input(2) != kNone) {
      const Value& zeros = value(node->inputs[2]);
      auto kept = std::make_shared<int8_t>(*static_cast<const int8_t*>(zeros.data));
      node->inputs[2] = add(kept, node->name + "/zero", zeros.type, {});
    }
    std::erase_if(node->attributes, [](const Attribute& a) { return a.name == "axis"; });
  }

  // Whether an epilogue makes it: a product, with pointwise nodes behind that nothing else reads.
  bool is_behind_product(int made) const {
    constexpr int kFarthest = 4;
    for (int steps = 0; steps < kFarthest; ++steps) {
      const Value& v = value(made);
      if (v.producer == kNone || v.users.size() != 1 || v.n_outputs > 0) return false;
      const Node& maker = node(v.producer);
      if (maker.op == "Conv" || maker.op == "MatMul" || maker.op == "Gemm") return true;
      if (maker.expr.empty() || maker.inputs.empty() || maker.inputs[0] == kNone) return false;
      made = maker.inputs[0];
    }
    return false;
  }

  // x over the scales.
  Node divided(Node* quantize) {
    const Dims dims = value(quantize->inputs[0]).dims;
    const bool multiplies = is_behind_product(quantize->inputs[0]);
    std::vector<float> numbers;
    for (int64_t c = 0; c < dims[1]; ++c) {
      const float scale = floats(quantize->inputs[1])[c];
      numbers.push_back(multiplies ? 1 / scale : scale);
    }
    Dims along(dims.size() - 1, 1);
    along[0] = dims[1];
    Value made;
    made.name = value(quantize->inputs[0]).name + "/steps";
    made.type = ElementType::kF32;
    made.dims = dims;
    const int factors = constant(quantize->name + "/scales", std::move(numbers), along);
    const int result = graph_.add_value(std::move(made));
    Node product{.op = multiplies ? "Mul" : "Div",
                 .name = quantize->name + "/steps",
                 .inputs = {quantize->inputs[0], factors},
                 .outputs = {result}};
    backend::ProgramBuilder program;
    const uint32_t x = program.input(0);
    const uint32_t op = multiplies ? TN_EXPR_MUL : TN_EXPR_DIV;
    program.finish(program.emit(op, x, program.input(1)), &product);
    quantize->inputs[0] = result;
    return product;
  }

  // The weights' DequantizeLinear with both scales.
  Node rescaled(Node* conv, int scales) {
    Node back = node(value(conv->inputs[1]).producer);
    const Value old = value(back.outputs[0]);
    const int64_t channels = old.dims[0], step = value(back.inputs[1]).count() == 1 ? 0 : 1;
    std::vector<float> numbers;
    for (int64_t c = 0; c < channels; ++c)
      numbers.push_back(floats(back.inputs[1])[c * step] * floats(scales)[c]);
    Value made;
    made.name = old.name + "/rescaled";
    made.type = old.type;
    made.dims = old.dims;
    back.name += "/rescaled";
    back.inputs = {back.inputs[0], constant(back.name, std::move(numbers), {channels})};
    back.outputs = {graph_.add_value(std::move(made))};
    back.attributes = {{"axis", int64_t{0}}};
    conv->inputs[1] = back.outputs[0];
    return back;
  }

  void rebuild() {
    const std::vector<Node> before = graph_.nodes;
    std::vector<Node> after;
    for (int i = 0; i < static_cast<int>(before.size()); ++i) {
      Node changed = before[static_cast<size_t>(i)];
      if (quantizes_.contains(i)) after.push_back(divided(&changed));
      if (quantizes_.contains(i) || backs_.contains(i)) use_steps(&changed);
      if (auto found = scales_of_.find(i); found != scales_of_.end())
        after.push_back(rescaled(&changed, found->second));
      after.push_back(std::move(changed));
    }
    graph_.reorder(std::move(after));
  }

  Graph& graph_;
  std::set<int> quantizes_, backs_;
  std::map<int, int> scales_of_;  // of the activation that a convolution reads
};

}  // namespace

void move_channel_scales(Graph& graph) {
  Moving(graph).run();
}

}  // namespace tenon::onednn

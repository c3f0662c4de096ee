// SPDX-License-Identifier: Apache-2.0
#include "expand.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "tenon/sdk/backend/program.hpp"

namespace tenon::onednn {
namespace {

class Expansion {
 public:
  explicit Expansion(Graph& graph) : graph_(graph), before_(std::move(graph.nodes)) {
    graph_.nodes.clear();
  }

  void run() {
    for (Node& node : before_) {
      if (node.outputs.empty()) continue;
      bool is_vector = false;
      for (int input : node.inputs)
        is_vector |= input != kNone && graph_.values[input].dims.size() == 1;
      if (node.op == "MatMul" && is_vector) {
        matmul_of_vectors(node);
      } else if (node.op == "Gemm" && !is_plain_gemm(graph_, node)) {
        gemm(node);
      } else if (node.op == "tenon.ConvInputGrad") {
        node.op = "ConvTranspose";
        node.inputs.resize(2);
        graph_.add_node(std::move(node));
      } else if (node.op == "tenon.SumTo") {
        sum_to(node);
      } else if (is_known_norm(node)) {
        norm(node);
      } else if (Node* back = dequantize_behind(node)) {
        round(node, *back);
        back->outputs.clear();
      } else {
        graph_.add_node(std::move(node));
      }
    }
    graph_.finish();
  }

  static bool is_plain_gemm(const Graph& graph, const Node& node) {
    if (node.real("alpha", 1.0) != 1.0) return false;
    if (node.input(2) == kNone) return true;
    const Value& c = graph.values[node.inputs[2]];
    const Value& y = graph.values[node.outputs[0]];
    bool is_row = !c.dims.empty() && c.dims.back() == y.dims[1] && c.count() == y.dims[1];
    return node.real("beta", 1.0) == 1.0 && is_row;
  }

 private:
  int value_like(int like, const char* what, const Dims& dims) {
    Value made;
    made.name = graph_.values[like].name + "/" + what;
    made.type = graph_.values[like].type;
    made.dims = dims;
    return graph_.add_value(std::move(made));
  }

  int reshaped(const Node& node, int value, const Dims& dims) {
    int made = value_like(value, "matrix", dims);
    graph_.add_node({.op = "Reshape", .name = node.name, .inputs = {value}, .outputs = {made}});
    return made;
  }

  void matmul_of_vectors(const Node& node) {
    int a = node.inputs[0];
    int b = node.inputs[1];
    const Dims a_dims = graph_.values[a].dims;
    const Dims b_dims = graph_.values[b].dims;
    const Dims y_dims = graph_.values[node.outputs[0]].dims;
    if (a_dims.size() == 1) a = reshaped(node, a, {1, a_dims[0]});
    if (b_dims.size() == 1) b = reshaped(node, b, {b_dims[0], 1});
    Dims dims = y_dims;
    if (a_dims.size() == 1) dims.insert(dims.end() - (b_dims.size() == 1 ? 0 : 1), 1);
    if (b_dims.size() == 1) dims.push_back(1);
    int y = value_like(node.outputs[0], "product", dims);
    graph_.add_node({.op = "MatMul", .name = node.name, .inputs = {a, b}, .outputs = {y}});
    graph_.add_node(
        {.op = "Reshape", .name = node.name, .inputs = {y}, .outputs = {node.outputs[0]}});
  }

  // alpha * (A B) + beta * C
  void gemm(const Node& node) {
    int product = value_like(node.outputs[0], "product", graph_.values[node.outputs[0]].dims);
    Node multiply{.op = "Gemm", .name = node.name, .outputs = {product}};
    multiply.inputs = {node.inputs[0], node.inputs[1]};
    for (const Attribute& attribute : node.attributes) {
      bool is_factor = attribute.name == "alpha" || attribute.name == "beta";
      if (!is_factor) multiply.attributes.push_back(attribute);
    }
    graph_.add_node(std::move(multiply));
    Node sum{.op = "Gemm.sum", .name = node.name, .inputs = {product}, .outputs = node.outputs};
    backend::ProgramBuilder program;
    auto scaled = [&](uint32_t input, double factor) {
      const uint32_t value = program.input(input);
      return factor == 1.0 ? value : program.emit(TN_EXPR_MUL, value, program.number(factor));
    };
    uint32_t result = scaled(0, node.real("alpha", 1.0));
    if (node.input(2) != kNone) {
      sum.inputs.push_back(node.inputs[2]);
      const uint32_t right = scaled(1, node.real("beta", 1.0));
      if (program.size() == 2) sum.op = "Add";  // the product may take it along
      result = program.emit(TN_EXPR_ADD, result, right);
    }
    program.finish(result, &sum);
    graph_.add_node(std::move(sum));
  }

  void sum_to(const Node& node) {
    Dims dims = graph_.values[node.inputs[0]].dims;
    const Dims to = graph_.values[node.outputs[0]].dims;
    size_t shift = dims.size() - to.size();
    Dims axes;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      bool goes = axis < shift || to[axis - shift] != dims[axis];
      if (!goes) continue;
      axes.push_back(static_cast<int64_t>(axis));
      dims[axis] = 1;
    }
    int sums = node.inputs[0];
    if (!axes.empty()) {
      sums = value_like(node.inputs[0], "sums", dims);
      graph_.add_node({.op = "ReduceSum",
                       .name = node.name,
                       .inputs = {node.inputs[0]},
                       .outputs = {sums},
                       .attributes = {{"axes", axes}}});
    }
    graph_.add_node(
        {.op = "Reshape", .name = node.name, .inputs = {sums}, .outputs = {node.outputs[0]}});
  }

  bool is_known_row(int value, int64_t count) const {
    if (value == kNone) return false;
    const Value& row = graph_.values[value];
    return row.data != nullptr && row.type == ElementType::kF32 && row.count() == count;
  }

  // BatchNormalization in inference, by known numbers. One behind a Conv is left to its epilogue,
  // which folds it into the weights.
  bool is_known_norm(const Node& node) const {
    if (node.op != "BatchNormalization" || node.integer("training_mode", 0) != 0) return false;
    const Value& x = graph_.values[node.inputs[0]];
    if (x.type != ElementType::kF32 || x.dims.size() < 2 || node.outputs.size() != 1) return false;
    if (x.producer != kNone && graph_.nodes[x.producer].op == "Conv") return false;
    for (size_t i = 1; i <= 4; ++i)
      if (!is_known_row(node.input(i), x.dims[1])) return false;
    return true;
  }

  // (x - mean) * factor + beta, a pointwise node: what stands before and behind it runs in one pass
  // with it. The mean is not part of a shift: where it is far larger than the deviation, that
  // would cost the digits of the result.
  void norm(const Node& node) {
    const Value& x = graph_.values[node.inputs[0]];
    const int64_t count = x.dims[1];
    Dims along(x.dims.size(), 1);
    along[1] = count;
    auto row = [&](size_t i) {
      return static_cast<const float*>(graph_.values[node.inputs[i]].data);
    };
    auto factor = std::make_shared<std::vector<float>>();
    const double epsilon = node.real("epsilon", 1e-5);
    for (int64_t c = 0; c < count; ++c) {
      const double scale = double{row(1)[c]} / std::sqrt(double{row(4)[c]} + epsilon);
      factor->push_back(static_cast<float>(scale));
    }
    Node made{.op = "BatchNormalization.affine",
              .name = node.name,
              .inputs = {node.inputs[0]},
              .outputs = node.outputs};
    auto take = [&](std::shared_ptr<const void> kept, const float* numbers) {
      const int value = value_like(node.inputs[1], "folded", along);
      graph_.values[value].data = numbers;
      graph_.values[value].keeper = std::move(kept);
      made.inputs.push_back(value);
    };
    take(graph_.values[node.inputs[3]].keeper, row(3));
    take(factor, factor->data());
    take(graph_.values[node.inputs[2]].keeper, row(2));
    backend::ProgramBuilder program;
    const uint32_t centred = program.emit(TN_EXPR_SUB, program.input(0), program.input(1));
    const uint32_t scaled = program.emit(TN_EXPR_MUL, centred, program.input(2));
    program.finish(program.emit(TN_EXPR_ADD, scaled, program.input(3)), &made);
    graph_.add_node(std::move(made));
  }

  // The node that turns integers back into floating-point numbers, when nothing else reads them and
  // their scales are not known before the run: what stands for rounding while a model is trained.
  Node* dequantize_behind(const Node& node) {
    if (node.op != "QuantizeLinear" || node.integer("block_size", 0) != 0) return nullptr;
    const Value& scale = graph_.values[node.inputs[1]];
    bool is_known = scale.data != nullptr && scale.count() == 1;
    int user = graph_.only_user(node.outputs[0]);
    if (is_known || scale.dims.size() > 1 || user == kNone || !zero_point(node)) return nullptr;
    Node& back = before_[static_cast<size_t>(user)];
    bool undoes = back.op == "DequantizeLinear" && back.inputs[1] == node.inputs[1] &&
                  back.input(2) == node.input(2) &&
                  back.integer("axis", 1) == node.integer("axis", 1);
    return undoes ? &back : nullptr;
  }

  // That of all scales; nothing when they differ or are computed.
  std::optional<int> zero_point(const Node& node) const {
    if (node.input(2) == kNone) return 0;
    const Value& zero = graph_.values[node.inputs[2]];
    const int8_t* bytes = static_cast<const int8_t*>(zero.data);
    if (bytes == nullptr || !std::equal(bytes + 1, bytes + zero.count(), bytes)) return {};
    return zero.type == ElementType::kU8 ? static_cast<uint8_t>(*bytes) : *bytes;
  }

  // Both nodes as one program, with the scales where they broadcast.
  void round(const Node& node, const Node& back) {
    int scale = node.inputs[1];
    const Dims dims = graph_.values[node.inputs[0]].dims;
    if (graph_.values[scale].count() > 1) {
      Dims along(dims.size(), 1);
      along[static_cast<size_t>(positive_axis(node.integer("axis", 1), dims.size()))] =
          graph_.values[scale].count();
      scale = reshaped(node, scale, along);
    }
    bool is_signed = graph_.values[node.outputs[0]].type == ElementType::kS8;
    double low = (is_signed ? -128 : 0) - *zero_point(node);
    Node made{.op = "Round.held",
              .name = back.name,
              .inputs = {node.inputs[0], scale},
              .outputs = back.outputs};
    backend::ProgramBuilder program;
    const uint32_t x = program.input(0);
    program.finish(program.fake_quantized(x, program.input(1), low, low + 255), &made);
    graph_.add_node(std::move(made));
  }

  Graph& graph_;
  std::vector<Node> before_;
};

}  // namespace

void expand(Graph& graph) {
  Expansion(graph).run();
}

}  // namespace tenon::onednn

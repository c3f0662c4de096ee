// SPDX-License-Identifier: Apache-2.0
#include "conv_integer.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tenon/sdk/backend/program.hpp"

namespace tenon::onednn {
namespace {

constexpr double kExactSums = 16777216;  // 2^24: f32 has all integers up to it
constexpr double kLargestInput = 255;    // of 8-bit integers, less a zero point

bool is_byte(const Value& value) {
  return value.is_known && (value.type == ElementType::kU8 || value.type == ElementType::kS8);
}

float byte_at(const Value& value, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(value.data);
  return value.type == ElementType::kU8 ? bytes[i] : static_cast<int8_t>(bytes[i]);
}

class ConvIntegers {
 public:
  explicit ConvIntegers(Graph& graph) : graph_(graph) {}

  void run() {
    auto is_one = [](const Node& node) { return node.op == "ConvInteger"; };
    if (std::ranges::none_of(graph_.nodes, is_one)) return;
    std::vector<Node> before = std::move(graph_.nodes);
    for (Node& node : before) {
      if (!is_one(node)) {
        ordered_.push_back(std::move(node));
      } else if (node.unbound = why_not(node); node.unbound.empty()) {
        convert(std::move(node), before);
      } else {
        ordered_.push_back(std::move(node));
      }
    }
    graph_.reorder(std::move(ordered_));
  }

 private:
  std::string why_not(const Node& node) {
    if (node.input(0) == kNone || node.input(1) == kNone || node.output(0) == kNone)
      return "an input or the output is absent";
    const Value& weight = graph_.value(node.inputs[1]);
    if (!is_byte(graph_.value(node.inputs[0])) || !is_byte(weight) || weight.dims.empty())
      return "operands of ConvInteger are no 8-bit integers of known shape";
    if (weight.data == nullptr) return "the weight of ConvInteger is computed";
    if (node.input(2) != kNone && graph_.value(node.inputs[2]).count() != 1)
      return "the input of ConvInteger has several zero points";
    if (node.input(3) != kNone && !fits(graph_.value(node.inputs[3]), weight.dims[0]))
      return "the zero points of ConvInteger's weight are computed, or not one for each filter";
    weights_ = less_zero_points(node);
    return largest_sum(weight.dims[0]) * kLargestInput < kExactSums
               ? ""
               : "sums of ConvInteger may pass 2^24, beyond which f32 is not exact";
  }

  static bool fits(const Value& zero, int64_t n_filters) {
    return is_byte(zero) && zero.data != nullptr &&
           (zero.count() == 1 || zero.count() == n_filters);
  }

  std::shared_ptr<std::vector<float>> less_zero_points(const Node& node) const {
    const Value& weight = graph_.value(node.inputs[1]);
    const Value* zero = node.input(3) == kNone ? nullptr : &graph_.value(node.inputs[3]);
    const int64_t taps = weight.count() / std::max<int64_t>(weight.dims[0], 1);
    auto numbers = std::make_shared<std::vector<float>>();
    numbers->reserve(static_cast<size_t>(weight.count()));
    for (int64_t i = 0; i < weight.count(); ++i) {
      const float shift = zero ? byte_at(*zero, zero->count() == 1 ? 0 : i / taps) : 0;
      numbers->push_back(byte_at(weight, i) - shift);
    }
    return numbers;
  }

  double largest_sum(int64_t n_filters) const {
    double most = 0;
    const size_t taps = weights_->size() / static_cast<size_t>(std::max<int64_t>(n_filters, 1));
    for (size_t begin = 0; taps > 0 && begin < weights_->size(); begin += taps) {
      double sum = 0;
      for (size_t i = begin; i < begin + taps; ++i)
        sum += std::abs(double{(*weights_)[i]});
      most = std::max(most, sum);
    }
    return most;
  }

  void convert(Node node, std::vector<Node>& before) {
    const int sums = node.outputs[0];
    const int input = shifted(node, cast(node.inputs[0]));
    const int weight = graph_.add_f32_like(node.inputs[1], "less_zero_points");
    graph_.set_numbers(weight, weights_);
    node.op = "Conv";
    node.inputs = {input, weight};
    node.outputs = {graph_.add_f32_like(sums, "f32")};
    const int exact = node.outputs[0];
    graph_.values[static_cast<size_t>(exact)].is_exact = true;
    ordered_.push_back(std::move(node));
    if (!read_as_they_are(sums, exact, before)) ordered_.push_back(graph_.cast_node(exact, sums));
  }

  // Casts of the sums to f32 give them on. False: something reads the integers.
  bool read_as_they_are(int sums, int exact, std::vector<Node>& before) {
    bool are_all = graph_.value(sums).n_outputs == 0;
    for (int user : graph_.value(sums).users) {
      Node& reader = before[static_cast<size_t>(user)];
      if (reader.op == "Cast" && graph_.value(reader.outputs[0]).type == ElementType::kF32) {
        reader.op = "Identity";
        reader.inputs = {exact};
      } else {
        are_all = false;
      }
    }
    return are_all;
  }

  int shifted(const Node& node, int input) {
    if (node.input(2) == kNone) return input;
    const int zero = cast(node.inputs[2]);
    const int made = graph_.add_f32_like(node.inputs[0], "less_zero_point");
    Node less{.op = "Sub", .name = node.name + "/zero_point", .outputs = {made}};
    less.inputs = {input, zero};
    backend::ProgramBuilder program;
    const uint32_t x = program.input(0);
    program.finish(program.emit(TN_EXPR_SUB, x, program.input(1)), &less);
    ordered_.push_back(std::move(less));
    return made;
  }

  int cast(int value) {
    const int made = graph_.add_f32_like(value, "f32");
    ordered_.push_back(graph_.cast_node(value, made));
    return made;
  }

  Graph& graph_;
  std::vector<Node> ordered_;
  std::shared_ptr<std::vector<float>> weights_;  // of the node at hand, less their zero points
};

}  // namespace

void float_conv_integers(Graph& graph) {
  ConvIntegers(graph).run();
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "depthwise_signals.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::onednn {
namespace {

constexpr int64_t kFewestChannels = 8;  // with fewer the image's forms do not pay
constexpr size_t kSignalRank = 3;

struct Operator {
  std::string_view op;
  size_t n_tensors;  // inputs that are signals or filters; a bias or a shape follows
};
constexpr Operator kOperators[] = {
    {"Conv", 2}, {"ConvTranspose", 2}, {"tenon.ConvInputGrad", 2}, {"tenon.ConvWeightGrad", 2}};

// What the new axis adds to the attributes that have a number for each axis, or for each end.
struct NewNumber {
  std::string_view attribute;
  int64_t number;
};
constexpr NewNumber kNewNumbers[] = {{"kernel_shape", 1},   {"strides", 1},
                                     {"dilations", 1},      {"pads", 0},
                                     {"output_padding", 0}, {"output_shape", 1}};

Dims with_row(Dims dims) {
  dims.insert(dims.end() - 1, 1);
  return dims;
}

class Rewriting {
 public:
  explicit Rewriting(Graph& graph) : graph_(graph) {}

  void run() {
    const auto is_one = [this](const Node& node) { return tensors_of(node) != 0; };
    if (std::ranges::none_of(graph_.nodes, is_one)) return;
    std::vector<size_t> counts;
    for (const Node& node : graph_.nodes)
      counts.push_back(tensors_of(node));
    std::vector<Node> before = std::move(graph_.nodes);
    for (size_t i = 0; i < before.size(); ++i) {
      if (counts[i] != 0)
        convert(std::move(before[i]), counts[i]);
      else
        ordered_.push_back(std::move(before[i]));
    }
    graph_.reorder(std::move(ordered_));
  }

 private:
  const Value& value(int i) const { return graph_.values[static_cast<size_t>(i)]; }

  // How many inputs get an axis; 0: the node stays as it is.
  size_t tensors_of(const Node& node) const {
    const auto* found = std::ranges::find(kOperators, std::string_view(node.op), &Operator::op);
    if (found == std::end(kOperators) || node.output(0) == kNone) return 0;
    const bool makes_filters = node.op == "tenon.ConvWeightGrad";
    const int filters = makes_filters ? node.outputs[0] : node.input(1);
    const bool are_signals = std::all_of(node.inputs.begin(), node.inputs.begin() + 2,
                                         [this](int input) { return is_signal(input); });
    if (!are_signals || !is_signal(node.outputs[0])) return 0;
    const Dims& dims = value(filters).dims;
    const bool is_depthwise =
        dims[0] >= kFewestChannels && dims[1] == 1 && node.integer("group", 1) == dims[0];
    return is_depthwise ? found->n_tensors : 0;
  }

  // Quantized operands stay with the node that reads them.
  bool is_signal(int i) const {
    if (i == kNone || value(i).dims.size() != kSignalRank) return false;
    const int producer = value(i).producer;
    return value(i).type == ElementType::kF32 &&
           (producer == kNone ||
            graph_.nodes[static_cast<size_t>(producer)].op != "DequantizeLinear");
  }

  int add_image(int like) {
    Value made;
    made.name = value(like).name + "/image";
    made.type = value(like).type;
    made.dims = with_row(value(like).dims);
    return graph_.add_value(std::move(made));
  }

  // A constant stays one.
  int image_of(int signal, const std::string& name) {
    if (value(signal).data != nullptr) {
      const Value known = value(signal);
      const int image =
          graph_.add_constant(known.name + "/image", known.type, with_row(known.dims), known.data);
      graph_.values[static_cast<size_t>(image)].keeper = known.keeper;
      return image;
    }
    const int image = add_image(signal);
    ordered_.push_back({.op = "Reshape", .name = name, .inputs = {signal}, .outputs = {image}});
    return image;
  }

  void convert(Node node, size_t n_tensors) {
    const std::string name = node.name;
    for (size_t i = 0; i < n_tensors; ++i)
      node.inputs[i] = image_of(node.inputs[i], name);
    for (Attribute& attribute : node.attributes)
      widen(attribute);
    const int result = node.outputs[0];
    const int image = add_image(result);
    node.outputs[0] = image;
    ordered_.push_back(std::move(node));
    ordered_.push_back({.op = "Reshape", .name = name, .inputs = {image}, .outputs = {result}});
  }

  static void widen(Attribute& attribute) {
    const auto* found =
        std::ranges::find(kNewNumbers, std::string_view(attribute.name), &NewNumber::attribute);
    auto* numbers = std::get_if<Dims>(&attribute.value);
    if (found == std::end(kNewNumbers) || numbers == nullptr || numbers->empty()) return;
    numbers->insert(numbers->begin(), found->number);
    if (attribute.name == "pads") numbers->insert(numbers->begin() + 2, found->number);
  }

  Graph& graph_;
  std::vector<Node> ordered_;
};

}  // namespace

void make_signals_images(Graph& graph) {
  Rewriting(graph).run();
}

}  // namespace tenon::onednn

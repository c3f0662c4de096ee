// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include <algorithm>
#include <numeric>

namespace tenon::decomposer {
namespace {

// How often a window is laid on along an axis that has so many entries before and after it.
double work_places(const Layer& layer, int64_t before, int64_t after) {
  return static_cast<double>(layer.is_transposed() ? before : after);
}

// The step's numbers, axes in this order, as a constant.
Result<Value> weight_constant(EditView edit,
                              const Layer& layer,
                              const Step& step,
                              const std::vector<int64_t>& order,
                              std::string_view name) {
  std::vector<int64_t> dims;
  for (int64_t axis : order)
    dims.push_back(step.dims[static_cast<size_t>(axis)]);
  std::vector<double> numbers = permuted(step.numbers, step.dims, order);
  if (layer.dtype == TN_F64) return edit.constant<double>(TN_F64, dims, numbers, name);
  std::vector<float> rounded(numbers.begin(), numbers.end());
  return edit.constant<float>(TN_F32, dims, rounded, name);
}

// Which axis of a step's weight stands at each axis of the node's.
std::vector<int64_t> own_order(const Layer& layer) {
  std::vector<int64_t> axes = layer.weight_axes(), order(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    order[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  return order;
}

// Attributes of a convolution along some of the axes; the lists live as long as this.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  std::string auto_pad;

  Window(Node node, const Layer& layer, const Step& step) {
    size_t n_axes = layer.window.size();
    std::vector<int64_t> old_strides = node.attr_ints("strides");
    std::vector<int64_t> old_dilations = node.attr_ints("dilations"), old = node.attr_ints("pads");
    pads.assign(2 * n_axes, 0);
    for (size_t i = 0; i < n_axes; ++i) {
      bool slides = step.axes[i];
      kernel.push_back(step.dims[i + 2]);
      strides.push_back(slides && i < old_strides.size() ? old_strides[i] : 1);
      dilations.push_back(slides && i < old_dilations.size() ? old_dilations[i] : 1);
      for (size_t side : {i, i + n_axes})
        if (slides && side < old.size()) pads[side] = old[side];
    }
    // An axis with a window and stride of 1 gets no padding from any of its words.
    auto_pad = node.attr_text("auto_pad", "NOTSET");
  }
  std::vector<Attr> attrs(int64_t group) const {
    std::vector<Attr> out{{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}};
    if (auto_pad == "NOTSET" || auto_pad.empty()) {
      out.emplace_back("pads", pads);
    } else {
      out.emplace_back("auto_pad", std::string_view(auto_pad));
    }
    if (group != 1) out.emplace_back("group", group);
    return out;
  }
};

// The step that the node's own operator does, with the node's attributes: of a convolution the one
// whose window is the node's, of a product the last. The others are plain products and
// convolutions.
size_t own_step(const Layer& layer, const std::vector<Step>& steps) {
  if (!layer.is_conv) return steps.size() - 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    bool whole =
        std::equal(layer.window.begin(), layer.window.end(), step.dims.begin() + 2) &&
        std::all_of(step.axes.begin(), step.axes.end(), [](bool slides) { return slides; });
    if (whole && step.group == 1) return i;
  }
  return steps.size();
}

class Replacement {
 public:
  Replacement(EditView edit, Node node, const Layer& layer)
      : edit_(edit), node_(node), layer_(layer), name_(node.name()), scope_(node.scope()) {}

  // The node with another weight, and without the bias where a later step adds it.
  Result<Node> own(Value at, const Step& step, bool keeps_bias, std::string_view weight) {
    TN_TRY(constant, weight_constant(edit_, layer_, step, own_order(layer_), weight));
    std::vector<Value> inputs = node_.inputs();
    inputs[layer_.act] = at;
    inputs[layer_.weight_input] = constant;
    auto bias = static_cast<size_t>(layer_.bias);
    if (!keeps_bias && layer_.bias >= 0 && bias < inputs.size()) inputs[bias] = {};
    while (!inputs.empty() && !inputs.back())
      inputs.pop_back();
    std::vector<std::string> keys;
    for (uint64_t i = 0, n = services.graph->attr_count(edit_.graph().raw, node_.id); i < n; ++i)
      keys.emplace_back(view(services.graph->attr_name(edit_.graph().raw, node_.id, i)));
    std::vector<Attr> attrs;
    for (const std::string& key : keys)
      attrs.emplace_back(key, node_.attr(key));
    return add(node_.type(), std::move(inputs), std::move(attrs), step.suffix, node_.domain());
  }

  // x [.., k, ..] times [k, r], k being the node's axis.
  Result<Node> product(Value at, const Step& step, std::string_view weight) {
    TN_TRY(constant, weight_constant(edit_, layer_, step, {1, 0}, weight));
    auto last = static_cast<int64_t>(at.type().rank()) - 1;
    if (layer_.form.act_in == last) return add("MatMul", {at, constant}, {}, step.suffix);
    std::vector<int64_t> swapped(static_cast<size_t>(last) + 1);
    std::iota(swapped.begin(), swapped.end(), int64_t{0});
    std::swap(swapped[static_cast<size_t>(layer_.form.act_in)], swapped.back());
    Attr perm("perm", swapped);
    TN_TRY(before, add("Transpose", {at}, {perm}, cat(step.suffix, "_before")));
    TN_TRY(made, add("MatMul", {before.output(), constant}, {}, step.suffix));
    return add("Transpose", {made.output()}, {perm}, cat(step.suffix, "_after"));
  }

  Result<Node> convolution(Value at, const Step& step, Value bias, std::string_view weight) {
    std::vector<int64_t> order(step.dims.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    TN_TRY(constant, weight_constant(edit_, layer_, step, order, weight));
    std::vector<Value> inputs{at, constant};
    if (bias) inputs.push_back(bias);
    Window window(node_, layer_, step);
    return add("Conv", std::move(inputs), window.attrs(step.group), step.suffix);
  }

 private:
  Result<Node> add(std::string_view type,
                   std::vector<Value> inputs,
                   std::vector<Attr> attrs,
                   std::string_view suffix,
                   std::string_view domain = {}) {
    std::string name = cat(name_, "_", suffix);
    return edit_.add({.type = type,
                      .inputs = std::move(inputs),
                      .attrs = std::move(attrs),
                      .name = name,
                      .domain = domain,
                      .scope = scope_});
  }

  EditView edit_;
  Node node_;
  const Layer& layer_;
  std::string name_, scope_;
};

}  // namespace

Cost cost_of(const Layer& layer) {
  auto parameters = static_cast<double>(layer.weight.numbers.size());
  double places = static_cast<double>(layer.batch);
  for (size_t i = 0; i < layer.extents_in.size(); ++i)
    places *= work_places(layer, layer.extents_in[i], layer.extents_out[i]);
  return {parameters, 2 * parameters * places};
}

Cost cost_of(const Layer& layer, const std::vector<Step>& steps) {
  Cost cost;
  std::vector<int64_t> extents = layer.extents_in;
  for (const Step& step : steps) {
    double places = static_cast<double>(layer.batch);
    for (size_t i = 0; i < extents.size(); ++i) {
      int64_t before = extents[i];
      if (step.axes[i]) extents[i] = layer.extents_out[i];
      places *= work_places(layer, before, extents[i]);
    }
    auto parameters = static_cast<double>(step.numbers.size());
    cost.parameters += parameters;
    cost.flops += 2 * parameters * places;
  }
  return cost;
}

Status replace(EditView edit, Node node, const Layer& layer, const std::vector<Step>& steps) {
  std::string name(node.name()), weight(node.input(layer.weight_input).name());
  std::string result(node.output().name());
  Value bias = layer.bias < 0 ? Value() : node.input(static_cast<uint64_t>(layer.bias));
  Value at = node.input(layer.act);
  Replacement replacement(edit, node, layer);
  size_t own = own_step(layer, steps);
  Node made;
  for (size_t i = 0; i < steps.size(); ++i) {
    bool last = i + 1 == steps.size();
    std::string called = cat(weight, "_", steps[i].suffix);
    auto add = [&]() -> Result<Node> {
      if (i == own) return replacement.own(at, steps[i], last, called);
      if (!layer.is_conv) return replacement.product(at, steps[i], called);
      return replacement.convolution(at, steps[i], last ? bias : Value(), called);
    };
    TN_TRY(added, add());
    made = added;
    at = made.output();
  }
  TN_CHECK(edit.replace(node.output(), at));
  TN_CHECK(edit.erase(node));
  TN_CHECK(services.edit->set_node_name(edit.raw, made.id, str(name)));
  return Status(services.edit->set_value_name(edit.raw, at.id, str(result)));
}

}  // namespace tenon::decomposer

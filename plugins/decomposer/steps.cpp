// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include <algorithm>

namespace tenon::decomposer {
namespace {

double product(const std::vector<int64_t>& extents) {
  double out = 1;
  for (int64_t extent : extents)
    out *= static_cast<double>(extent);
  return out;
}

Result<Value> weight_constant(EditView edit,
                              const Layer& layer,
                              const Step& step,
                              std::string_view name) {
  std::vector<int64_t> dims = step.dims;
  std::vector<double> turned;
  const std::vector<double>* numbers = &step.numbers;
  bool by_input = layer.form == Form::kMatMul ||
                  (layer.form == Form::kGemm && layer.node.attr_int("transB") == 0);
  if (by_input) {
    turned.resize(step.numbers.size());
    Eigen::Map<Matrix>(turned.data(), dims[1], dims[0]) =
        MatrixView(step.numbers.data(), dims[0], dims[1]).transpose();
    std::swap(dims[0], dims[1]);
    numbers = &turned;
  }
  if (layer.dtype == TN_F64) return edit.constant<double>(TN_F64, dims, *numbers, name);
  std::vector<float> rounded(numbers->begin(), numbers->end());
  return edit.constant<float>(TN_F32, dims, rounded, name);
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

// alpha, beta and C belong to the last product, transA to the first.
std::vector<Attr> gemm_attrs(Node node, bool first, bool last) {
  std::vector<Attr> out;
  if (node.attr_int("transB") != 0) out.emplace_back("transB", 1);
  if (first && node.attr_int("transA") != 0) out.emplace_back("transA", 1);
  if (!last) return out;
  for (std::string_view name : {"alpha", "beta"})
    if (node.attr_float(name, 1) != 1) out.emplace_back(name, node.attr_float(name, 1));
  return out;
}

}  // namespace

Cost cost_of(const Layer& layer) {
  auto parameters = static_cast<double>(layer.weight.numbers.size());
  double places = static_cast<double>(layer.batch) * product(layer.extents_out);
  return {parameters, 2 * parameters * places};
}

Cost cost_of(const Layer& layer, const std::vector<Step>& steps) {
  Cost cost;
  std::vector<int64_t> extents = layer.extents_in;
  for (const Step& step : steps) {
    for (size_t i = 0; i < extents.size(); ++i)
      if (step.axes[i]) extents[i] = layer.extents_out[i];
    auto parameters = static_cast<double>(step.numbers.size());
    cost.parameters += parameters;
    cost.flops += 2 * parameters * static_cast<double>(layer.batch) * product(extents);
  }
  return cost;
}

Status replace(EditView edit, Node node, const Layer& layer, const std::vector<Step>& steps) {
  std::string name(node.name()), scope(node.scope()), weight(node.input(1).name());
  std::string result(node.output().name());
  Value bias = node.input(2), at = node.input(0);
  Node made;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    bool last = i + 1 == steps.size();
    TN_TRY(constant, weight_constant(edit, layer, step, cat(weight, "_", step.suffix)));
    std::vector<Value> inputs{at, constant};
    if (last && bias) inputs.push_back(bias);
    std::vector<Attr> attrs;
    std::string step_name = cat(name, "_", step.suffix);
    NodeSpec spec{.type = node.type(), .inputs = inputs, .name = step_name, .scope = scope};
    if (layer.form == Form::kConv) {
      Window window(node, layer, step);
      spec.attrs = window.attrs(step.group);
      TN_TRY(added, edit.add(spec));
      made = added;
    } else {
      if (layer.form == Form::kGemm) spec.attrs = gemm_attrs(node, i == 0, last);
      TN_TRY(added, edit.add(spec));
      made = added;
    }
    at = made.output();
  }
  TN_CHECK(edit.replace(node.output(), at));
  TN_CHECK(edit.erase(node));
  TN_CHECK(services.edit->set_node_name(edit.raw, made.id, str(name)));
  return Status(services.edit->set_value_name(edit.raw, at.id, str(result)));
}

}  // namespace tenon::decomposer

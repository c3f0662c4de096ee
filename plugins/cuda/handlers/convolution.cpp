// SPDX-License-Identifier: Apache-2.0
// Conv, ConvTranspose, tenon:ConvInputGrad(dy, w, shape of x) and tenon:ConvWeightGrad(x, dy, shape
// of w) by cuDNN. All work with channels last, which is what tensor cores want.
#include "window.hpp"

namespace tenon::cuda {
namespace {

// The values of a convolution or of one of its gradients.
struct Roles {
  ConvolutionKind kind;
  int x, w, y;
};

Roles roles_of(const NodeInfo& node) {
  if (node.op == "tenon.ConvInputGrad") {
    return {ConvolutionKind::kInputGrad, node.outputs[0], node.inputs[1], node.inputs[0]};
  }
  if (node.op == "ConvTranspose") {  // what a convolution's gradient does, forward
    return {ConvolutionKind::kInputGrad, node.outputs[0], node.inputs[1], node.inputs[0]};
  }
  if (node.op == "tenon.ConvWeightGrad") {
    return {ConvolutionKind::kWeightGrad, node.inputs[0], node.outputs[0], node.inputs[1]};
  }
  return {ConvolutionKind::kForward, node.inputs[0], node.inputs[1], node.outputs[0]};
}

Window window_of(const Imported& graph, const NodeInfo& node, const Roles& roles) {
  const Dims& w = graph.value(roles.w).dims;
  return window_of(node, graph.value(roles.x).dims, graph.value(roles.y).dims,
                   Dims(w.begin() + 2, w.end()));
}

// What cuDNN adds in the same plan; a gradient has none.
int own_bias(const NodeInfo& node) {
  return node.op == "Conv" ? node.input(2) : kNone;
}

}  // namespace

std::string refuse_conv(const Imported& graph, const NodeInfo& node) {
  Roles roles = roles_of(node);
  if (roles.x == kNone || roles.w == kNone || roles.y == kNone) return "an absent operand";
  const ValueInfo& x = graph.value(roles.x);
  const Dims& w = graph.value(roles.w).dims;
  if (w.size() < 3) return "a kernel without a spatial axis";
  if (std::string why = refuse_window(graph, roles.x, w.size() - 2); !why.empty()) return why;
  if (graph.value(roles.y).dims.size() != w.size()) return "an output of another rank";
  if (!node.source.attr_ints("output_shape").empty()) return "an output shape in place of padding";
  for (int value : {roles.w, roles.y, own_bias(node)}) {
    if (value == kNone) continue;
    if (graph.value(value).dtype != x.dtype) return "operands of two types";
    if (graph.value(value).count() == 0) return "an empty tensor";
  }
  Window window = window_of(graph, node, roles);
  for (int axis = 0; axis < 2; ++axis) {
    if (window.pad[axis] != window.end_pad[axis] || window.pad[axis] < 0)
      return "padding that is not the same at both ends";
    int64_t reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    int64_t steps = (window.in[axis] + 2 * window.pad[axis] - reach) / window.stride[axis] + 1;
    if (steps != window.out[axis]) return "an output size that the window does not give";
  }
  return {};
}

Convolution convolution_of(const Imported& graph,
                           const NodeInfo& node,
                           const Lowering::Epilogue& epilogue) {
  constexpr int kThere = 0;
  Roles roles = roles_of(node);
  Window window = window_of(graph, node, roles);
  const Dims& x = graph.value(roles.x).dims;
  const Dims& y = graph.value(roles.y).dims;
  Convolution c;
  c.kind = roles.kind;
  c.dtype = graph.value(roles.x).dtype;
  c.channels_last = true;
  c.n = x[0];
  c.c = x[1];
  c.h = window.in[0];
  c.width = window.in[1];
  c.k = y[1];
  c.r = window.kernel[0];
  c.s = window.kernel[1];
  c.p = window.out[0];
  c.q = window.out[1];
  c.groups = node.source.attr_int("group", 1);
  for (int axis = 0; axis < 2; ++axis) {
    c.pad[axis] = window.pad[axis];
    c.stride[axis] = window.stride[axis];
    c.dilation[axis] = window.dilation[axis];
  }
  if (own_bias(node) != kNone || epilogue.bias != kNone) c.bias = kThere;
  if (epilogue.residual != kNone) c.z = kThere;
  c.relu = epilogue.activation == Activation::kRelu;
  return c;
}

bool adds_bias(const Imported& graph, const NodeInfo& node, const Target& target) {
  if (!target.why_no_convolution) return true;
  return target.why_no_convolution(convolution_of(graph, node, Lowering::no_epilogue(node)))
      .empty();
}

std::string why_no_convolution(const Imported& graph, const NodeInfo& node, const Target& target) {
  if (!target.why_no_convolution) return {};
  Convolution form = convolution_of(graph, node, Lowering::no_epilogue(node));
  std::string why = target.why_no_convolution(form);
  if (why.empty() || form.bias == kNone) return why;
  form.bias = kNone;
  return target.why_no_convolution(form);
}

void lower_conv(Lowering& lowering, const NodeInfo& node) {
  Roles roles = roles_of(node);
  Lowering::Epilogue epilogue = lowering.epilogue_of(node);
  Convolution c = convolution_of(lowering.graph(), node, epilogue);
  bool is_forward = c.kind == ConvolutionKind::kForward;
  int bias = epilogue.bias != kNone ? epilogue.bias : own_bias(node);
  if (bias != kNone) c.bias = lowering.buffer(bias);
  if (epilogue.residual != kNone) c.z = lowering.channels_last(epilogue.residual);
  auto place = [&](int value, bool is_made) {
    return is_made ? lowering.new_channels_last(value) : lowering.channels_last(value);
  };
  c.x = place(roles.x, c.kind == ConvolutionKind::kInputGrad);
  c.w = place(roles.w, c.kind == ConvolutionKind::kWeightGrad);
  c.y = place(is_forward ? epilogue.out : roles.y, is_forward);
  int made = is_forward ? c.y : c.kind == ConvolutionKind::kInputGrad ? c.x : c.w;
  Step step{node.name, node.op, "cudnn", c, {}, {made}, 0, 0};
  for (int buffer : {c.x, c.w, c.y, c.bias, c.z}) {
    if (buffer >= 0 && buffer != made) step.reads.push_back(buffer);
  }
  double products = static_cast<double>(c.c / c.groups * c.r * c.s);
  step.flops = 2 * static_cast<double>(lowering.value(roles.y).count()) * products;
  for (int value : {roles.x, roles.w, roles.y})
    step.bytes += static_cast<double>(lowering.value(value).bytes());
  lowering.add(std::move(step));
}

}  // namespace tenon::cuda

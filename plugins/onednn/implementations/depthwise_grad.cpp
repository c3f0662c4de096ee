// SPDX-License-Identifier: Apache-2.0
// The gradient of the weights of a convolution with one filter for each channel, by own kernels.

#include "kernels/depthwise_grad.h"

#include "conv_geometry.hpp"
#include "conv_grad.hpp"
#include "lowering/state_layout.hpp"

namespace tenon::onednn {

std::string why_not_depthwise(const ConvGradSite& site) {
  const Node& node = site.node();
  const Dims &x = site.dims(node.inputs[0]), &w = site.dims(node.outputs[0]);
  if (x.size() != 4) return "not two spatial axes";
  if (node.integer("group", 1) != x[1] || w[0] != x[1]) return "not one filter for each channel";
  return x[1] == 1 ? "one channel" : "";
}

void lower_depthwise_weight_grad(const ConvGradSite& site) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const Dims& dims = site.dims(node.outputs[0]);
  auto read = [&](size_t i) {
    return lowering.read(node.inputs[i], lowering.real_type(),
                         channels_last_strides(site.dims(node.inputs[i])));
  };
  const View x = read(0), dy = read(1);
  const Window window = find_window(node, x.dims, dy.dims, Dims(dims.begin() + 2, dims.end()));
  // [channels, 1, height, width] lies the same way whichever layout is wanted.
  const View made = lowering.make(node.outputs[0], ElementType::kF32,
                                  kept_strides(lowering.graph(), node.outputs[0]));
  kernels::DepthwiseGradArgs args{.type = x.type,
                                  .images = x.dims[0],
                                  .channels = x.dims[1],
                                  .windows = windows_of(x.dims, dy.dims, window)};
  Step step{.name = node.name, .kernel = "tenon:depthwise_grad", .always_succeeds = true};
  step.flops = 2.0 * static_cast<double>(dy.count() * args.taps());
  step.bytes = static_cast<double>(x.bytes() + dy.bytes());
  step.places = {place_of(x),
                 place_of(dy),
                 place_of(made),
                 {lowering.scratch(kernels::depthwise_grad_scratch_bytes(args)), 0}};
  step.kernel_function = [args](const kernels::Context& context, void* const* p) -> const char* {
    kernels::DepthwiseGradArgs call = args;
    call.x = p[0];
    call.dy = p[1];
    call.dw = static_cast<float*>(p[2]);
    kernels::depthwise_grad(context, call, p[3]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn

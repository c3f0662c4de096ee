// SPDX-License-Identifier: Apache-2.0
// LRN, on the planes of channels, or on channels that lie side by side.

#include "kernels/lrn.h"

#include <algorithm>

#include "dense.hpp"

namespace tenon::onednn {

std::string refuse_lrn(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.dims.size() < 2) return "only f32 of at least two axes";
  return node.integer("size", 0) >= 1 ? "" : "a size below 1";
}

namespace {

kernels::LrnArgs arguments_of(const Node& node, int64_t channels) {
  kernels::LrnArgs args;
  args.channels = channels;
  args.size = node.integer("size", 1);
  args.alpha = static_cast<float>(node.real("alpha", 1e-4) / static_cast<double>(args.size));
  args.size = std::min(args.size, 2 * args.channels + 1);  // there are no more on either side
  args.beta = static_cast<float>(node.real("beta", 0.75));
  args.bias = static_cast<float>(node.real("bias", 1.0));
  return args;
}

auto runner(const kernels::LrnArgs& args) {
  return [=](const kernels::Context& context, void* const* pointers) -> const char* {
    kernels::LrnArgs call = args;
    call.src = static_cast<const float*>(pointers[0]);
    call.dst = static_cast<float*>(pointers[1]);
    kernels::normalize_response(context, call);
    return nullptr;
  };
}

// As convolutions leave their results, and read their sources.
void lower_channels_last(Lowering& lowering, const Node& node, kernels::LrnArgs args) {
  const Dims& dims = lowering.graph().values[node.inputs[0]].dims;
  const View src = lowering.read(node.inputs[0], ElementType::kF32, channels_last_strides(dims));
  args.outer = src.count() / args.channels;
  args.inner = 1;
  const View dst = lowering.make(node.outputs[0], ElementType::kF32, src.strides);
  Step step{.name = node.name, .kernel = "tenon:lrn", .always_succeeds = true};
  step.bytes = static_cast<double>(src.bytes() + dst.bytes());
  step.places = {place_of(src), place_of(dst)};
  step.kernel_function = runner(args);
  lowering.add_step(std::move(step));
}

}  // namespace

void lower_lrn(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const AxisSplit split = split_at(graph.values[node.inputs[0]].dims, 1);
  kernels::LrnArgs args = arguments_of(node, split.k);
  const View& found = lowering.view(node.inputs[0]);
  if (found.count() > 0 && is_channels_last(found) && !is_row_major(found))
    return lower_channels_last(lowering, node, args);
  args.outer = split.outer;
  args.inner = split.inner;
  lower_dense(lowering, index, "tenon:lrn", runner(args));
}

}  // namespace tenon::onednn

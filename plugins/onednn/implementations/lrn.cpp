// SPDX-License-Identifier: Apache-2.0
// LRN, on the planes of channels.

#include "kernels/lrn.h"

#include <algorithm>

#include "dense.hpp"

namespace tenon::onednn {

std::string refuse_lrn(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.dims.size() < 2) return "only f32 of at least two axes";
  return node.integer("size", 0) >= 1 ? "" : "a size below 1";
}

void lower_lrn(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  AxisSplit split = split_at(graph.values[node.inputs[0]].dims, 1);
  kernels::LrnArgs args;
  args.outer = split.outer;
  args.channels = split.k;
  args.inner = split.inner;
  args.size = node.integer("size", 1);
  args.alpha = static_cast<float>(node.real("alpha", 1e-4) / static_cast<double>(args.size));
  args.size = std::min(args.size, 2 * args.channels + 1);  // there are no more on either side
  args.beta = static_cast<float>(node.real("beta", 0.75));
  args.bias = static_cast<float>(node.real("bias", 1.0));
  lower_dense(lowering, index, "tenon:lrn",
              [=](const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::LrnArgs call = args;
                call.src = static_cast<const float*>(pointers[0]);
                call.dst = static_cast<float*>(pointers[1]);
                kernels::normalize_response(context, call);
                return nullptr;
              });
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// Col2Im in f32, of windows whose sizes are constants.

#include <algorithm>

#include "dense.hpp"
#include "kernels/fold.h"

namespace tenon::onednn {
namespace {

// Positions of the window along one axis; below 1: it is wider than the image.
int64_t positions(const kernels::FoldArgs& args, size_t axis, int64_t padding_behind) {
  const int64_t reach = args.dilations[axis] * (args.window[axis] - 1) + 1;
  const int64_t room = args.to[axis] + args.padding[axis] + padding_behind - reach;
  return room < 0 ? 0 : room / args.strides[axis] + 1;
}

kernels::FoldArgs fold_of(const Graph& graph, const Node& node) {
  const Value& block = graph.values[node.inputs[2]];
  const Dims& result = graph.values[node.outputs[0]].dims;
  const size_t n_spatial = result.size() - 2;
  const Dims ones(n_spatial, 1);
  const Dims strides = node.integers("strides", ones), dilations = node.integers("dilations", ones);
  const Dims pads = node.integers("pads", Dims(2 * n_spatial, 0));
  kernels::FoldArgs args{.images = result[0], .channels = result[1]};
  for (size_t i = 0; i < n_spatial; ++i) {
    const size_t axis = kernels::kFoldAxes - n_spatial + i;
    args.window[axis] = integer_at(block.data, block.type, static_cast<int64_t>(i));
    args.to[axis] = result[i + 2];
    args.strides[axis] = strides[i];
    args.dilations[axis] = dilations[i];
    args.padding[axis] = pads[i];
    args.from[axis] = positions(args, axis, pads[n_spatial + i]);
  }
  return args;
}

int64_t product(const int64_t (&extents)[kernels::kFoldAxes]) {
  return extents[0] * extents[1] * extents[2];
}

}  // namespace

std::string refuse_col2im(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  const Dims& result = graph.values[node.outputs[0]].dims;
  const Value& block = graph.values[node.inputs[2]];
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  if (result.size() < 3 || result.size() > 2 + kernels::kFoldAxes)
    return "only 1, 2 or 3 spatial axes";
  const bool is_known = block.data != nullptr && is_integer_parameter(graph, node, 2) &&
                        block.count() == static_cast<int64_t>(result.size()) - 2;
  if (!is_known || graph.values[node.inputs[1]].data == nullptr) return "sizes that are computed";
  const kernels::FoldArgs args = fold_of(graph, node);
  if (args.strides[kernels::kFoldAxes - 1] > kernels::kMostFoldStride)
    return "a stride of more than " + std::to_string(kernels::kMostFoldStride);
  const bool fits = src.dims.size() == 3 && src.dims[1] == args.channels * product(args.window) &&
                    src.dims[2] == product(args.from);
  return fits ? "" : "another number of windows than the sizes say";
}

void lower_col2im(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  lower_dense(lowering, index, "tenon:fold",
              [args = fold_of(graph, graph.nodes[index])](const kernels::Context& context,
                                                          void* const* pointers) -> const char* {
                kernels::FoldArgs now = args;
                now.columns = static_cast<const float*>(pointers[0]);
                now.dst = static_cast<float*>(pointers[3]);
                kernels::fold(context, now);
                return nullptr;
              });
}

}  // namespace tenon::onednn

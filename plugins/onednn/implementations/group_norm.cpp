// SPDX-License-Identifier: Apache-2.0
// InstanceNormalization and GroupNormalization: each run of a group's elements is normalized as a
// row, then scaled and shifted by channel while it is in the cache.

#include <algorithm>

#include "dense.hpp"
#include "kernels/norm.h"

namespace tenon::onednn {

std::string refuse_group_norm(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.dims.size() < 2) return "only f32 of at least two axes";
  for (size_t i : {1, 2}) {
    if (node.input(i) == kNone) return "expected scale and bias";
    const Value& row = graph.values[node.inputs[i]];
    if (row.type != ElementType::kF32 || row.count() != src.dims[1]) {
      return "a scale or bias that is not one f32 for each channel";
    }
  }
  int64_t groups = node.integer("num_groups", 1);
  return groups >= 1 && src.dims[1] % groups == 0 ? "" : "groups that do not divide the channels";
}

void lower_group_norm(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const int64_t channels = dims[1];
  const int64_t groups =
      node.op == "InstanceNormalization" ? channels : node.integer("num_groups", 1);
  const int64_t inner = split_at(dims, 1).inner;
  const int64_t n = channels / groups * inner;
  kernels::NormArgs args;
  args.rows = 1;
  args.n = n;
  args.epsilon = static_cast<float>(node.real("epsilon", 1e-5));
  const int64_t rows = dims[0] * groups;
  lower_dense(lowering, index, "tenon:group_norm",
              [=](const kernels::Context& context, void* const* pointers) -> const char* {
                const float* scale = static_cast<const float*>(pointers[1]);
                const float* bias = static_cast<const float*>(pointers[2]);
                kernels::parallel_for(context.parallel, rows, kernels::grain_rows(n * 8),
                                      [&](int64_t lo, int64_t hi) {
                                        kernels::Context alone{context.table, {}};
                                        for (int64_t row = lo; row < hi; ++row) {
                                          kernels::NormArgs call = args;
                                          float* out = static_cast<float*>(pointers[3]) + row * n;
                                          call.src.data =
                                              static_cast<const float*>(pointers[0]) + row * n;
                                          call.dst.data = out;
                                          kernels::normalize(alone, call);
                                          for (int64_t i = 0; i < n; i += inner) {
                                            int64_t channel = (row * n + i) / inner % channels;
                                            for (int64_t k = i; k < i + inner; ++k)
                                              out[k] = out[k] * scale[channel] + bias[channel];
                                          }
                                        }
                                      });
                return nullptr;
              });
}

}  // namespace tenon::onednn

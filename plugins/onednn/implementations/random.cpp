// SPDX-License-Identifier: Apache-2.0
// Uniform numbers: tenon.Random, whose key is an input, as Dropout draws them in each training
// step, and RandomUniformLike, whose seed is an attribute.

#include <bit>

#include "tenon/sdk/draws.hpp"

#include "dense.hpp"
#include "kernels/draws.h"

namespace tenon::onednn {

std::string refuse_random(const Graph& graph, const Node& node) {
  const Value &stated = graph.values[node.inputs[0]], &key = graph.values[node.inputs[1]];
  const Value& made = graph.values[node.outputs[0]];
  if (node.text("kind", "uniform") != "uniform") return "only kind=uniform";
  if (made.type != ElementType::kF32) return "only results of f32";
  if (stated.type != ElementType::kI64 || key.type != ElementType::kI64)
    return "only a shape and a key of i64";
  if (stated.count() != static_cast<int64_t>(made.dims.size())) return "a shape of another rank";
  return key.count() == 1 || key.count() == 2 ? "" : "only keys of 1 or 2 elements";
}

void lower_random(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& made = graph.values[node.outputs[0]];
  const bool has_stream = graph.values[node.inputs[1]].count() > 1;
  lower_dense(lowering, index, "tenon:random",
              [dims = made.dims, n = made.count(), has_stream](
                  const kernels::Context& context, void* const* pointers) -> const char* {
                if (!std::equal(dims.begin(), dims.end(), static_cast<const int64_t*>(pointers[0])))
                  return "the shape is not the one that was compiled";
                const auto* key = static_cast<const uint64_t*>(pointers[1]);
                kernels::draw_uniform(context, {key[0], has_stream ? key[1] : 0},
                                      static_cast<float*>(pointers[2]), n);
                return nullptr;
              });
}

std::string refuse_random_uniform(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].type == ElementType::kF32 ? "" : "only results of f32";
}

// Its input is gone by now (rewrites/shape_reads): the first pointer is NULL.
void lower_random_uniform(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const double low = node.real("low", 0), high = node.real("high", 1);
  const kernels::Uniform of{std::bit_cast<uint64_t>(seed_of(node.source)), 0, low, high - low};
  lower_dense(lowering, index, "tenon:random",
              [of, n = lowering.graph().values[node.outputs[0]].count()](
                  const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::draw_uniform(context, of, static_cast<float*>(pointers[1]), n);
                return nullptr;
              });
}

}  // namespace tenon::onednn

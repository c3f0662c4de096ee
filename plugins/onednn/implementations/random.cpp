// SPDX-License-Identifier: Apache-2.0
// Random numbers: tenon.Random, whose key is an input, as Dropout draws them in each training step,
// and RandomUniformLike and RandomNormalLike, whose seed is an attribute.

#include <bit>
#include <cmath>

#include "tenon/sdk/draws.hpp"

#include "dense.hpp"
#include "kernels/draws.h"

namespace tenon::onednn {
namespace {

using Kernel = decltype(&kernels::draw_uniform);

Kernel kernel_for(bool is_normal) {
  return is_normal ? &kernels::draw_normal : &kernels::draw_uniform;
}

// The largest f32 that is below the end of what is drawn uniformly.
float largest_below(double high, double scale) {
  if (scale <= 0) return HUGE_VALF;
  const auto rounded = static_cast<float>(high);
  return rounded < high ? rounded : std::nextafter(rounded, -HUGE_VALF);
}

}  // namespace

std::string refuse_random(const Graph& graph, const Node& node) {
  const Value &stated = graph.values[node.inputs[0]], &key = graph.values[node.inputs[1]];
  const Value& made = graph.values[node.outputs[0]];
  const std::string kind = node.text("kind", "uniform");
  if (kind != "uniform" && kind != "normal") return "only kind=uniform and normal";
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
  const Kernel draw = kernel_for(node.text("kind", "uniform") == "normal");
  lower_dense(lowering, index, "tenon:random",
              [dims = made.dims, n = made.count(), has_stream, draw](
                  const kernels::Context& context, void* const* pointers) -> const char* {
                if (!std::equal(dims.begin(), dims.end(), static_cast<const int64_t*>(pointers[0])))
                  return "the shape is not the one that was compiled";
                const auto* key = static_cast<const uint64_t*>(pointers[1]);
                draw(context, {key[0], has_stream ? key[1] : 0}, static_cast<float*>(pointers[2]),
                     n);
                return nullptr;
              });
}

std::string refuse_random_like(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].type == ElementType::kF32 ? "" : "only results of f32";
}

// Its input is gone by now (rewrites/shape_reads): the first pointer is NULL.
void lower_random_like(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const bool is_normal = node.op == "RandomNormalLike";
  kernels::Draws draws{std::bit_cast<uint64_t>(seed_of(node.source))};
  draws.shift = node.real(is_normal ? "mean" : "low", 0);
  draws.scale = is_normal ? node.real("scale", 1) : node.real("high", 1) - draws.shift;
  draws.largest = largest_below(node.real("high", 1), draws.scale);
  lower_dense(
      lowering, index, "tenon:random",
      [draws, n = lowering.graph().values[node.outputs[0]].count(), draw = kernel_for(is_normal)](
          const kernels::Context& context, void* const* pointers) -> const char* {
        draw(context, draws, static_cast<float*>(pointers[1]), n);
        return nullptr;
      });
}

}  // namespace tenon::onednn

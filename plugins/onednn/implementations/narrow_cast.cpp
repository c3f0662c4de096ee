// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike from and to floating-point numbers of 8 and 4 bits and integers of 4 and 2
// bits. Such values lie row-major and dense, as nothing else here makes or moves them.
#include "narrow_cast.hpp"

#include "dense.hpp"
#include "kernels/narrow.h"

namespace tenon::onednn {
namespace {

RoundTo rounding(const Node& node) {
  const std::string mode = node.text("round_mode", "up");
  if (mode == "down") return RoundTo::kDown;
  return mode == "nearest" ? RoundTo::kNearest : RoundTo::kUp;
}

}  // namespace

bool is_narrow_cast(const Graph& graph, const Node& node) {
  return kernels::is_narrow_type(graph.values[node.inputs[0]].type) ||
         kernels::is_narrow_type(graph.values[node.outputs[0]].type);
}

void lower_narrow_cast(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const View from = read_dense(lowering, node.inputs[0]);
  const View to = lowering.make(node.outputs[0], value.type, row_major_strides(value.dims));
  const CastRule rule{node.integer("saturate", 1) != 0, rounding(node)};
  Step step{.name = node.name, .kernel = "tenon:narrow_cast", .always_succeeds = true};
  step.places = {place_of(from), place_of(to)};
  step.bytes = static_cast<double>(from.bytes() + to.bytes());
  step.kernel_function = [rule, a = from.type, b = to.type, n = value.count()](
                             const kernels::Context& context,
                             void* const* pointers) -> const char* {
    kernels::convert_elements(context, a, pointers[0], b, pointers[1], n, rule);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn

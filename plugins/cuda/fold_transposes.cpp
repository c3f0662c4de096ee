// SPDX-License-Identifier: Apache-2.0
#include "fold_transposes.hpp"

#include <algorithm>

#include "handlers/handlers.hpp"

namespace tenon::cuda {
namespace {

// The value that the Transpose making `value` exchanges the last two axes of; kNone: none does.
int exchanged(const Imported& graph, int value) {
  int producer = graph.value(value).producer;
  if (producer == kNone || graph.node(producer).op != "Transpose") return kNone;
  const NodeInfo& node = graph.node(producer);
  size_t rank = graph.value(value).dims.size();
  if (rank < 2) return kNone;
  Dims perm = node.source.attr_ints("perm");
  if (perm.empty() && rank == 2) perm = {1, 0};
  if (perm.size() != rank) return kNone;
  std::swap(perm[rank - 1], perm[rank - 2]);
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis_of(perm[axis], rank) != axis) return kNone;
  return node.inputs[0];
}

bool is_dead(const Imported& graph, const NodeInfo& node) {
  const ValueInfo& out = graph.value(node.outputs[0]);
  return node.op == "Transpose" && out.users.empty() && out.n_outputs == 0;
}

}  // namespace

Imported fold_transposes(const Imported& graph, const Target& target) {
  Imported made = graph;
  for (NodeInfo& node : made.nodes) {
    if (node.op != "MatMul" && node.op != "Gemm") continue;
    for (size_t i : {size_t{0}, size_t{1}}) {
      int source = exchanged(graph, node.inputs[i]);
      if (source == kNone) continue;
      NodeInfo folded = node;
      folded.inputs[i] = source;
      folded.is_exchanged[i] = true;
      if (why_no_product(made, folded, target).empty()) node = std::move(folded);
    }
  }
  made.link();
  std::erase_if(made.nodes, [&](const NodeInfo& node) { return is_dead(made, node); });
  made.link();
  return made;
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#include "split_biases.hpp"

#include <utility>

#include "handlers/handlers.hpp"

namespace tenon::cuda {
namespace {

// y = the convolution of x and w + bias along the channels.
void split(NodeInfo node, Imported* made) {
  int bias = node.inputs[2], out = node.outputs[0];
  ValueInfo sum = made->value(out);
  sum.name += " without bias";
  sum.n_outputs = 0;
  Dims along(sum.dims.size() - 1, 1);
  along[0] = sum.dims[1];
  NodeInfo add;
  add.source = node.source;
  add.op = "cuda.Biased";
  add.name = node.name;
  add.shapes = {sum.dims, along};
  made->values.push_back(std::move(sum));
  int product = static_cast<int>(made->values.size()) - 1;
  add.inputs = {product, bias};
  add.outputs = {out};
  backend::ProgramBuilder p;
  uint32_t x = p.input(0);
  p.finish(p.emit(TN_EXPR_ADD, x, p.input(1)), &add);
  node.inputs.resize(2);
  node.outputs = {product};
  made->nodes.push_back(std::move(node));
  made->nodes.push_back(std::move(add));
}

bool is_split(const Imported& graph, const NodeInfo& node, const Target& target) {
  if (node.input(2) == kNone) return false;
  return node.op == "ConvTranspose" || (node.op == "Conv" && !adds_bias(graph, node, target));
}

}  // namespace

Imported split_biases(const Imported& graph, const Target& target) {
  Imported made = graph;
  made.nodes.clear();
  for (const NodeInfo& node : graph.nodes) {
    if (is_split(graph, node, target)) {
      split(node, &made);
    } else {
      made.nodes.push_back(node);
    }
  }
  made.link();
  return made;
}

}  // namespace tenon::cuda

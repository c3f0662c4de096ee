// SPDX-License-Identifier: Apache-2.0
#include "split_batch_norms.hpp"

#include <map>
#include <utility>

namespace tenon::cuda {
namespace {

struct Statistics {
  int mean, inv_std;
  double epsilon;
};

class Splitter {
 public:
  explicit Splitter(const Imported& graph) : graph_(graph), made_(graph) { made_.nodes.clear(); }

  Imported split() {
    for (const NodeInfo& node : graph_.nodes) {
      if (node.op == "BatchNormalization") {
        split_forward(node);
      } else if (node.op == "tenon.BatchNormGrad") {
        split_gradient(node);
      } else {
        made_.nodes.push_back(node);
      }
    }
    made_.link();
    return std::move(made_);
  }

 private:
  // A float32 of each channel, as `like` has it.
  int new_channels(std::string name, int like) {
    ValueInfo value;
    value.name = std::move(name);
    value.dtype = TN_F32;
    value.dims = made_.value(like).dims;
    value.is_known = true;
    made_.values.push_back(std::move(value));
    return static_cast<int>(made_.values.size()) - 1;
  }

  static NodeInfo part_of(const NodeInfo& node, const char* op) {
    NodeInfo part;
    part.source = node.source;
    part.op = op;
    part.name = node.name;
    return part;
  }

  // Of x, and running ones where the node has them.
  Statistics add_statistics(const NodeInfo& node, int x, int scale) {
    Statistics made{new_channels(node.name + " mean", scale),
                    new_channels(node.name + " deviation", scale),
                    node.source.attr_float("epsilon", 1e-5)};
    NodeInfo part = part_of(node, "cuda.BatchStatistics");
    part.inputs = {x};
    part.outputs = {made.mean, made.inv_std};
    if (node.op == "BatchNormalization") {
      part.inputs.insert(part.inputs.end(), {node.inputs[3], node.inputs[4]});
      part.outputs.insert(part.outputs.end(), {node.output(1), node.output(2)});
    }
    made_.nodes.push_back(std::move(part));
    known_[x] = made;
    return made;
  }

  // Operands of x's shape and then those of its channels.
  void add_pointwise(NodeInfo part, size_t n_whole) {
    const Dims& whole = made_.value(part.inputs[0]).dims;
    Dims along(whole.size() - 1, 1);
    along[0] = whole[1];
    part.shapes.assign(n_whole, whole);
    part.shapes.resize(part.inputs.size(), along);
    made_.nodes.push_back(std::move(part));
  }

  void split_forward(const NodeInfo& node) {
    Statistics of = add_statistics(node, node.inputs[0], node.inputs[1]);
    NodeInfo part = part_of(node, "cuda.BatchNormalized");
    part.inputs = {node.inputs[0], of.mean, of.inv_std, node.inputs[1], node.inputs[2]};
    part.outputs = {node.outputs[0]};
    backend::ProgramBuilder p;
    uint32_t normal = normalized(p, p.input(0), 1);
    uint32_t scaled = p.emit(TN_EXPR_MUL, normal, p.input(3));
    p.finish(p.emit(TN_EXPR_ADD, scaled, p.input(4)), &part);
    add_pointwise(std::move(part), 1);
  }

  static uint32_t normalized(backend::ProgramBuilder& p, uint32_t x, uint32_t mean_at) {
    uint32_t off = p.emit(TN_EXPR_SUB, x, p.input(mean_at));
    return p.emit(TN_EXPR_MUL, off, p.input(mean_at + 1));
  }

  // dx = (dy - (dbias + normalized x * dscale) / n) * scale * inv_std
  void split_gradient(const NodeInfo& node) {
    int dy = node.inputs[0], x = node.inputs[1], scale = node.inputs[2];
    double epsilon = node.source.attr_float("epsilon", 1e-5);
    auto known = known_.find(x);
    bool fits = known != known_.end() && known->second.epsilon == epsilon;
    Statistics of = fits ? known->second : add_statistics(node, x, scale);
    auto place = [&](size_t output, const char* what) {
      return node.output(output) != kNone ? node.output(output)
                                          : new_channels(cat(node.name, " ", what), scale);
    };
    int dscale = place(1, "dscale"), dbias = place(2, "dbias");
    NodeInfo sums = part_of(node, "cuda.BatchGradients");
    sums.inputs = {dy, x, of.mean, of.inv_std};
    sums.outputs = {dscale, dbias};
    made_.nodes.push_back(std::move(sums));
    NodeInfo part = part_of(node, "cuda.BatchNormGrad");
    part.inputs = {dy, x, of.mean, of.inv_std, scale, dscale, dbias};
    part.outputs = {node.outputs[0]};
    backend::ProgramBuilder p;
    uint32_t normal = normalized(p, p.input(1), 2);
    uint32_t along = p.emit(TN_EXPR_ADD, p.input(6), p.emit(TN_EXPR_MUL, normal, p.input(5)));
    const ValueInfo& whole = made_.value(x);
    double each = static_cast<double>(whole.dims[1]) / static_cast<double>(whole.count());
    uint32_t centred = p.emit(TN_EXPR_SUB, p.input(0), p.emit(TN_EXPR_MUL, along, p.number(each)));
    uint32_t scaled = p.emit(TN_EXPR_MUL, centred, p.input(4));
    p.finish(p.emit(TN_EXPR_MUL, scaled, p.input(3)), &part);
    add_pointwise(std::move(part), 2);
  }

  const Imported& graph_;
  Imported made_;
  std::map<int, Statistics> known_;  // by value
};

}  // namespace

Imported split_batch_norms(const Imported& graph) {
  return Splitter(graph).split();
}

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
// Before: nodes that read only constants, or only the shape of values whose shape is known
// After:  their results as constants
// Needs:  a row that the reference backend runs; not random, stateful or control flow. Weights
//         that are stored quantized stay so: QuantizeLinear and DequantizeLinear are left alone.
//         A result much larger than what it is made from (Expand, Tile) is left to run.
#include <unordered_set>

#include "rule.hpp"

namespace tenon::fusion {
namespace {

constexpr uint64_t kSmall = 1 << 20;  // bytes that may always be stored
constexpr uint64_t kGrowth = 2;

bool may_fold(Node node) {
  const tn_op* row = node.row();
  uint32_t never = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;
  if (!row || row->traits & never || !node.n_outputs()) return false;
  if (!row->ref && !row->expr.len && !row->decompose) return false;
  return !node.is("QuantizeLinear") && !node.is("DequantizeLinear");
}

bool stays_small(Node node) {
  uint64_t in = 0, out = 0;
  for (Value v : node.inputs()) {
    Type type = v ? v.type() : Type();
    if (type.is_static()) in += bytes_of(type.dtype, type.elements());
  }
  for (Value v : node.outputs()) {
    Type type = v.type();
    if (type.is_static()) out += bytes_of(type.dtype, type.elements());
  }
  return out <= kSmall || out <= kGrowth * in;
}

// Memory for the results of a folded node or plan.
struct Results {
  tn_ctx* ctx;
  std::vector<Tensor> tensors;
  tn_outputs raw{this, get};
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& results = *static_cast<Results*>(self);
    return guard([&]() -> Status {
      if (results.tensors.size() <= i) results.tensors.resize(i + 1);
      TN_TRY(made, Tensor::zeros(results.ctx, dtype_of(*proto), shape_of(*proto)));
      results.tensors[i] = made;
      *out = made.dl();
      return {};
    });
  }
};

Status replace_by(const Edit& edit, Value value, const Tensor& tensor) {
  TN_TRY(constant, edit.constant(tensor));
  return edit.replace(value, constant);
}

// Shape, Size and their like: the row's ref reads no data, so none is given.
Result<uint64_t> fold_shapes(tn_ctx* ctx, tn_graph* graph) {
  TN_TRY(edit, Edit::begin(graph));
  uint64_t changes = 0;
  for (Node node : edit.graph().nodes()) {
    const tn_op* row = node.row();
    if (!row || !(row->traits & TN_OP_READS_SHAPE) || !row->ref || node.n_outputs() != 1) continue;
    if (!node.output().consumer_count() && !node.output().is_output()) continue;
    bool known = true;
    std::vector<DenseView> views;
    for (Value v : node.inputs()) {
      Type type = v ? v.type() : Type();
      known = known && type.is_static();
      views.emplace_back(type.dtype, type.dims);
    }
    if (!known) continue;
    std::vector<const DLTensor*> in;
    for (const DenseView& view : views)
      in.push_back(view.get());
    Results results{ctx, {}};
    tn_op_call call{sizeof call,  0,       ctx, node.graph, node.id, in.data(), in.size(),
                    &results.raw, nullptr, 0,   nullptr};
    TN_CHECK(row->ref(&call));
    if (results.tensors.empty()) continue;
    TN_CHECK(replace_by(edit, node.output(), results.tensors[0]));
    TN_CHECK(edit.erase(node));
    ++changes;
  }
  if (changes) TN_CHECK(edit.commit());
  return changes;
}

// All nodes that depend on constants alone run once, as one plan on the reference backend.
Result<uint64_t> fold_constants(tn_ctx* ctx, tn_graph* graph) {
  std::vector<tn_node_id> nodes;
  std::unordered_set<tn_value_id> known;
  for (Node node : Graph{graph}.nodes()) {
    bool all = may_fold(node) && stays_small(node);
    for (Value v : node.inputs())
      all = all && (!v || v.is_constant() || known.count(v.id));
    if (!all) continue;
    nodes.push_back(node.id);
    for (Value v : node.outputs())
      known.insert(v.id);
  }
  if (nodes.empty()) return uint64_t{0};
  tn_graph* part = nullptr;
  TN_CHECK(services.graph->extract(graph, nodes.data(), nodes.size(), &part));
  OwnedGraph owned = OwnedGraph::take(part);
  tn_plan* plan = nullptr;
  TN_CHECK(
      services.eval->compile(ctx, part, nullptr, 0, str("{\"backend\": \"reference\"}"), &plan));
  Results results{ctx, {}};
  Status ran(services.eval->run(plan, nullptr, 0, &results.raw, nullptr));
  services.eval->release(plan);
  TN_CHECK(std::move(ran));
  TN_TRY(edit, Edit::begin(graph));
  std::vector<Value> outputs = owned.view().outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    TN_CHECK(replace_by(edit, edit.graph().find(outputs[i].name()), results.tensors[i]));
  }
  for (size_t i = nodes.size(); i-- > 0;)
    TN_CHECK(edit.erase(edit.node(nodes[i])));
  TN_CHECK(edit.commit());
  return nodes.size();
}

Result<uint64_t> fold(tn_ctx* ctx, tn_graph* graph) {
  TN_TRY(shapes, fold_shapes(ctx, graph));
  TN_TRY(constants, fold_constants(ctx, graph));
  return shapes + constants;
}

}  // namespace
}  // namespace tenon::fusion

TENON_RULE(constants,
           "constants",
           "computes what depends on constants and known shapes alone",
           nullptr,
           tenon::fusion::fold)

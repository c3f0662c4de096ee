// SPDX-License-Identifier: Apache-2.0
#include "fold_stored.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/sdk/plan.hpp"

#include "float_nodes.hpp"
#include "graph_outputs.hpp"
#include "repeated.hpp"
#include "role.hpp"

namespace tenon::quantizer {
namespace {

// What constants of stored values alone make: floats, or stored values that were moved.
class Folding {
 public:
  enum class Makes { kFloats, kMoved };
  Folding(tn_ctx* ctx, tn_graph* graph, Makes makes) : ctx_(ctx), graph_(graph), makes_(makes) {}

  Result<uint64_t> run(const Cancel& cancel) {
    find();
    uint64_t folded = 0;
    for (Node node : Graph{graph_}.nodes()) {
      if (!is_last(node)) continue;
      TN_CHECK(cancel.check());
      TN_TRY(is_done, fold(node, cancel));
      folded += is_done;
    }
    TN_TRY(edit, Edit::begin(graph_));
    TN_CHECK(erase_unused(edit));  // what they were made by
    TN_CHECK(edit.commit());
    return folded;
  }

 private:
  void find() {
    constexpr uint32_t kImpure = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;
    for (Node node : Graph{graph_}.nodes()) {
      const tn_op* row = node.row();
      const std::vector<Value> inputs = node.inputs();
      const bool is_computable = row && (row->traits & kImpure) == 0 && !inputs.empty();
      if (!is_computable || node.n_outputs() != 1) continue;
      const auto is_known = [&](Value v) { return !v || v.is_constant() || known_.contains(v.id); };
      if (!std::ranges::all_of(inputs, is_known)) continue;
      const auto is_stored = [&](Value v) {
        return v && (v.is_constant() ? is_narrow(v) : known_.at(v.id));
      };
      known_[node.output().id] =  // an int32 bias is not narrow
          role_of(node).is_quantized() || std::ranges::any_of(inputs, is_stored);
    }
  }

  bool is_wanted(Node node) const {
    if (makes_ == Makes::kFloats) return holds_floats(node.output());
    return is_narrow(node.output()) && role_of(node).kind == Kind::kSameScale;
  }

  // What is wanted of stored values, and read by what is not known.
  bool is_last(Node node) const {
    auto at = known_.find(node.output().id);
    if (at == known_.end() || !at->second || !is_wanted(node)) return false;
    const Value made = node.output();
    bool is_read = made.is_output();
    for (uint64_t i = 0; i < made.consumer_count() && !is_read; ++i) {
      Value next = made.consumer(i).output();
      is_read = !known_.contains(next.id);
    }
    return is_read;
  }

  // The node and the known ones that it reads.
  std::vector<tn_node_id> gather(Node last) const {
    std::unordered_set<tn_node_id> seen{last.id};
    std::vector<Node> open{last};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      for (Value v : node.inputs())
        if (v && known_.contains(v.id) && v.producer() && seen.insert(v.producer().id).second)
          open.push_back(v.producer());
    }
    return {seen.begin(), seen.end()};
  }

  // Stored values become some times larger; what a file repeats for gigabytes stays as it is.
  bool is_bounded(const std::vector<tn_node_id>& ids) const {
    constexpr uint64_t kTimes = 64, kFree = 1 << 16;
    uint64_t stored = 0, most = 0;
    for (tn_node_id id : ids) {
      const Node node{graph_, id};
      for (Value v : node.inputs())
        if (v && v.is_constant()) stored += services.tensor->bytes(v.constant().get());
      const Type type = node.output().type();
      if (!type.is_static()) return false;
      most = std::max(most, bytes_of(type.dtype, type.elements()));
    }
    return most <= kTimes * stored + kFree;
  }

  // One at a time, so that no more than one is there twice. False: it stays.
  Result<bool> fold(Node node, const Cancel& cancel) {
    const std::vector<tn_node_id> ids = gather(node);
    if (!is_bounded(ids)) return false;
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->extract(graph_, ids.data(), ids.size(), &raw));
    OwnedGraph part = OwnedGraph::take(raw);
    TN_TRY(plan, Plan::on_first(ctx_, part.view(), {}, {"reference"}));
    TN_CHECK(plan.run({}, cancel.raw()));
    const std::string name(node.output().name());
    const std::vector<Value> made = part.view().outputs();
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].name() != name) continue;
      TN_CHECK(put(node, plan[i], name));
      return true;
    }
    return Status(TN_INTERNAL, cat("the value ", name, " is not among what its nodes give"));
  }

  Status put(Node node, const Tensor& tensor, const std::string& name) {
    TN_TRY(edit, Edit::begin(graph_));
    Node inside = edit.node(node.id);
    Value old = inside.output();
    TN_TRY(constant, edit.constant(tensor, ""));
    TN_CHECK(give_out(edit, old, constant));
    TN_CHECK(edit.replace(old, constant));
    TN_CHECK(edit.erase(inside));
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, constant.id, str(name))));
    return edit.commit();
  }

  tn_ctx* ctx_;
  tn_graph* graph_;
  Makes makes_;
  std::unordered_map<tn_value_id, bool> known_;  // whether stored values are among what makes it
};

}  // namespace

bool is_narrow(Value v) {
  return v && TN_DTYPE_CODE(v.dtype()) != kDLBool && !holds_floats(v) &&
         TN_DTYPE_BITS(v.dtype()) <= 16;
}

Result<uint64_t> fold_stored(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel) {
  return Folding(ctx, graph, Folding::Makes::kFloats).run(cancel);
}

Status fold_moves(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel) {
  return Folding(ctx, graph, Folding::Makes::kMoved).run(cancel).status();
}

}  // namespace tenon::quantizer

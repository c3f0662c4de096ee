// SPDX-License-Identifier: Apache-2.0
// The end of an edit: sort, infer what was touched, drop what nothing uses, verify, swap in. All
// steps are linear in the size of the graph, and only touched nodes are inferred.
#include <algorithm>

#include "graph/edit.hpp"
#include "graph/verifier.hpp"

using namespace tenon::host;

namespace {

// Puts nodes in an order in which producers come first. Depth first along the present order, so
// that what is in order stays as it is, and what was added late moves to right before its use.
class Sorter {
 public:
  explicit Sorter(const Tables& tables) : tables_(tables), state_(tables.nodes.capacity(), kNew) {}

  bool sorted() const {
    std::vector<uint8_t> seen(state_.size());
    for (tn_node_id id : tables_.order) {
      for (tn_value_id input : tables_.nodes.find(id)->inputs) {
        tn_node_id producer = producer_of(input);
        if (producer != 0 && !seen[index(producer)]) return false;
      }
      seen[index(id)] = 1;
    }
    return true;
  }

  Result<std::vector<tn_node_id>> run() {
    for (tn_node_id id : tables_.order)
      TN_CHECK(visit(id));
    return std::move(out_);
  }

 private:
  enum State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    tn_node_id id;
    size_t next;
  };

  static size_t index(tn_node_id id) { return Slots<Node, 0>::index(id); }
  tn_node_id producer_of(tn_value_id id) const {
    const Value* value = tables_.values.find(id);
    return value ? value->producer : 0;
  }

  Status visit(tn_node_id root) {
    if (state_[index(root)] == kDone) return {};
    stack_.push_back({root, 0});
    state_[index(root)] = kOpen;
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const Node& node = *tables_.nodes.find(frame.id);
      if (frame.next == node.inputs.size()) {
        state_[index(frame.id)] = kDone;
        out_.push_back(frame.id);
        stack_.pop_back();
        continue;
      }
      tn_node_id producer = producer_of(node.inputs[frame.next++]);
      if (producer == 0 || state_[index(producer)] == kDone) continue;
      if (state_[index(producer)] == kOpen) return cycle(producer);
      state_[index(producer)] = kOpen;
      stack_.push_back({producer, 0});
    }
    return {};
  }

  Status cycle(tn_node_id closing) const {
    auto from = std::find_if(stack_.begin(), stack_.end(),
                             [&](const Frame& frame) { return frame.id == closing; });
    std::string path;
    for (auto at = from; at != stack_.end() && at - from < 8; ++at)
      path += *tables_.nodes.find(at->id)->name + " <- ";
    const Node& node = *tables_.nodes.find(closing);
    return invalid(cat("V1 acyclic: ", node_text(node), " needs its own output: ", path,
                       stack_.end() - from > 8 ? "... <- " : "", *node.name));
  }

  const Tables& tables_;
  std::vector<uint8_t> state_;
  std::vector<Frame> stack_;
  std::vector<tn_node_id> out_;
};

}  // namespace

Status tn_edit::sort() {
  Sorter sorter(*tables_);
  if (sorter.sorted()) return {};
  TN_TRY(order, sorter.run());
  tables_->order = std::move(order);
  return {};
}

Status tn_edit::infer_touched() {
  if (touched_.empty()) return {};
  for (tn_node_id id : tables_->order) {
    size_t slot = Slots<Node, 0>::index(id);
    if (slot < touched_.size() && touched_[slot]) TN_CHECK(infer(id));
  }
  return {};
}

Status tn_edit::drop_unused() {
  for (tn_value_id id : orphans_) {
    const Value& value = *tables_->values.find(id);
    if (!value.uses.empty())
      return invalid(cat("V2 values exist: ", node_text(*tables_->nodes.find(value.uses[0].node)),
                         ": input ", value.uses[0].input, ": ", *value.name,
                         ": its node was erased"));
    if (value.as_output > 0)
      return invalid(cat("V2 values exist: output ", *value.name, ": its node was erased"));
    drop_value(id);
  }
  orphans_.clear();
  std::erase_if(tables_->constants, [&](tn_value_id id) {
    const Value& value = *tables_->values.find(id);
    if (!value.uses.empty() || value.as_output > 0) return false;
    drop_value(id);
    return true;
  });
  return {};
}

Status tn_edit::commit() {
  if (inferring_ != 0)
    return {TN_FAILED_PRECONDITION, "commit: a shape column cannot end the edit that it is in"};
  TN_CHECK(sort());
  TN_CHECK(infer_touched());
  TN_CHECK(drop_unused());
  TN_CHECK(verify_tables(view()));
  tables_->nodes.recycle();
  tables_->values.recycle();
  graph_->tables = tables_;
  return {};
}

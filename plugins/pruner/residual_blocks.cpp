// SPDX-License-Identifier: Apache-2.0
#include "residual_blocks.hpp"

#include <algorithm>
#include <set>

#include "tenon/host/op_columns.h"
#include "tenon/role/op.h"

namespace tenon::pruner {
namespace {

bool is_same_type(const Type& a, const Type& b) {
  return a.ranked && b.ranked && a.dtype == b.dtype && a.dims == b.dims && a.symbols == b.symbols;
}

// As its row's expression says it, whoever's operator it is.
bool is_sum(Node node) {
  const tn_op* row = node.row();
  return row && (row->traits & TN_OP_POINTWISE) && view(row->expr) == "x + y" &&
         node.n_inputs() == 2;
}

bool is_only_read_within(Node node, const std::set<tn_node_id>& inside) {
  for (Value out : node.outputs()) {
    if (!out) continue;
    if (out.is_output()) return false;
    for (uint64_t i = 0; i < out.consumer_count(); ++i)
      if (!inside.contains(out.consumer(i).id)) return false;
  }
  return true;
}

class Branch {
 public:
  Branch(Value around, const std::vector<Node>& order) : around_(around), order_(order) {}

  // Whether `end` follows from the value that goes around; collects what lies before it.
  bool reaches(Value end) {
    std::vector<Value> left{end};
    bool found = false;
    while (!left.empty()) {
      Value value = left.back();
      left.pop_back();
      if (value == around_) {
        found = true;
        continue;
      }
      Node node = value.producer();
      if (!node || !seen_.insert(node.id).second) continue;
      for (Value in : node.inputs())
        if (in) left.push_back(in);
    }
    return found;
  }
  // Those that nothing but the join needs, in order.
  std::vector<Node> alone(Node join) const {
    std::set<tn_node_id> inside{join.id};
    std::vector<Node> out;
    for (size_t i = order_.size(); i-- > 0;) {
      if (!seen_.contains(order_[i].id) || !is_only_read_within(order_[i], inside)) continue;
      inside.insert(order_[i].id);
      out.push_back(order_[i]);
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  Value around_;
  const std::vector<Node>& order_;
  std::set<tn_node_id> seen_;
};

int64_t parameters_of(const std::vector<Node>& nodes) {
  std::set<tn_node_id> inside;
  for (Node node : nodes)
    inside.insert(node.id);
  std::set<tn_value_id> counted;
  int64_t out = 0;
  for (Node node : nodes) {
    for (Value in : node.inputs()) {
      if (!in || !in.is_constant() || !is_float(in.dtype()) || !counted.insert(in.id).second)
        continue;
      bool is_shared = false;
      for (uint64_t i = 0; i < in.consumer_count(); ++i)
        is_shared |= !inside.contains(in.consumer(i).id);
      if (!is_shared) out += in.type().elements();
    }
  }
  return out;
}

bool computes(const std::vector<Node>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](Node node) {
    const tn_op_columns* columns = node.columns();
    return columns &&
           (columns->quant == TN_QUANT_COMPUTE || columns->coupling == TN_COUPLING_RECURRENT);
  });
}

}  // namespace

std::vector<Block> blocks_of(Graph graph) {
  std::vector<Node> order = graph.nodes();
  std::vector<Block> out;
  for (Node join : order) {
    if (!is_sum(join)) continue;
    for (uint64_t side : {uint64_t{0}, uint64_t{1}}) {
      Value around = join.input(side), end = join.input(1 - side), result = join.output();
      bool fits = around && end && !around.is_constant() && !end.is_constant() &&
                  is_same_type(around.type(), result.type());
      if (!fits) continue;
      Branch branch(around, order);
      if (!branch.reaches(end)) continue;
      std::vector<Node> alone = branch.alone(join);
      if (!computes(alone)) continue;
      int64_t parameters = parameters_of(alone);
      out.push_back({join, around, result, std::move(alone), parameters});
      break;
    }
  }
  return out;
}

Status drop(EditView edit, const Block& block) {
  TN_CHECK(edit.replace(block.result, block.around));
  TN_CHECK(edit.erase(block.join));
  for (size_t i = block.branch.size(); i-- > 0;)
    TN_CHECK(edit.erase(block.branch[i]));
  return {};
}

}  // namespace tenon::pruner

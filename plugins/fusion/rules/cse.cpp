// SPDX-License-Identifier: Apache-2.0
// Before:  two nodes with one operator, the same attributes and the same inputs.
// After:   one of them.
// Needs:   the operator is neither random, stateful nor control flow; attributes are plain values.
//          Constants of up to 4 KiB count as the same when their types and bytes are; larger ones
//          when they are one tensor. Inputs of commutative operators are compared in any order.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

constexpr uint64_t kComparedBytes = 4096;
constexpr uint32_t kNever = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_text(std::string& key, std::string_view text) {
  append(key, text.size());
  key += text;
}

// False where the value is none that can be compared.
bool append_any(std::string& key, const tn_any& any) {
  append(key, any.tag);
  append(key, any.len);
  switch (any.tag) {
    case TN_ANY_I64:
    case TN_ANY_F64:
    case TN_ANY_BOOL:
    case TN_ANY_DTYPE:
      append(key, any.v.u);
      return true;
    case TN_ANY_TEXT:
      key.append(static_cast<const char*>(any.v.p), any.len);
      return true;
    case TN_ANY_I64S:
    case TN_ANY_F64S:
      key.append(static_cast<const char*>(any.v.p), any.len * 8);
      return true;
    case TN_ANY_TEXTS:
      for (const std::string& text : texts_of(any))
        append_text(key, text);
      return true;
    default:
      return false;
  }
}

class Numbering {
 public:
  // One id for all values that are the same.
  uint64_t of(Value value) {
    if (!value.is_constant()) return value.id;
    Tensor tensor = value.constant();
    DLTensor t = tensor.dl();
    std::string key;
    if (services.tensor->bytes(tensor.get()) > kComparedBytes || t.device.device_type != kDLCPU ||
        !is_dense(t)) {
      append(key, tensor.get());
    } else {
      append(key, dtype_of(t));
      for (int64_t dim : shape_of(t))
        append(key, dim);
      key.append(data_of<const char>(t), services.tensor->bytes(tensor.get()));
    }
    return constants_.emplace(std::move(key), value.id).first->second;
  }

 private:
  std::unordered_map<std::string, uint64_t> constants_;
};

// Empty where the node must stay by itself.
std::string key_of(Node node, Numbering& numbering) {
  const tn_op* row = node.row();
  if (!row || (row->traits & kNever) != 0) return {};
  std::string key;
  append_text(key, node.domain());
  append_text(key, node.type());
  append(key, node.n_outputs());
  std::vector<uint64_t> inputs;
  for (Value input : node.inputs())
    inputs.push_back(input ? numbering.of(input) : 0);
  if ((row->traits & TN_OP_COMMUTATIVE) != 0 && inputs.size() == 2)
    std::sort(inputs.begin(), inputs.end());
  append(key, inputs.size());
  for (uint64_t id : inputs)
    append(key, id);
  std::vector<std::string> names;
  for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i)
    names.emplace_back(view(services.graph->attr_name(node.graph, node.id, i)));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    append_text(key, name);
    if (!append_any(key, node.attr(name))) return {};
  }
  return key;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  std::unordered_map<std::string, tn_node_id> seen;
  Numbering numbering;
  std::vector<Node> nodes = Graph{graph}.nodes();
  TN_TRY(edit, Edit::begin(graph));
  int64_t applied = 0;
  for (Node borrowed : nodes) {
    Node node = edit.node(borrowed.id);
    if (!settings.covers(node)) continue;
    std::string key = key_of(node, numbering);
    if (key.empty()) continue;
    auto [first, fresh] = seen.emplace(std::move(key), node.id);
    if (fresh) continue;
    Node kept = edit.node(first->second);
    for (uint64_t i = 0; i < node.n_outputs(); ++i) {
      if (node.output(i) && kept.output(i)) TN_CHECK(edit.replace(node.output(i), kept.output(i)));
    }
    TN_CHECK(edit.erase(node));
    ++applied;
  }
  if (applied > 0) TN_CHECK(edit.commit());
  return applied;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(cse, "fusion.cse", "computes once what is computed twice", tenon::fusion::run)

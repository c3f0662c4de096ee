// SPDX-License-Identifier: Apache-2.0
#pragma once
// One transaction on a graph: works on a copy of its tables. What others may have borrowed while
// the edit goes on is kept in `retired` until its end.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/host/graph_edit.h"

#include "graph/graph.hpp"

namespace tenon::host {

struct OpRow;

// Inputs, outputs or attributes of one node: far above every model, so more are a wrong count.
inline constexpr uint64_t kMostOfNode = 1u << 20;

struct NodeSpec {
  std::string_view domain;
  std::string_view type;
  std::string_view name;
  std::string_view scope;
  std::vector<tn_value_id> inputs;
  std::vector<std::string> outputs;  // names; empty: made from the node's
  NamedAnys attrs;
};

Result<std::unique_ptr<tn_edit>> begin_edit(tn_graph* graph);
const tn_host_graph_edit* edit_service();

}  // namespace tenon::host

struct tn_edit : tenon::host::Handle<tn_edit> {
  using Status = tenon::host::Status;
  using TypeRef = tenon::host::TypeRef;
  template <class T>
  using Result = tenon::host::Result<T>;

  explicit tn_edit(tn_graph* edited);
  ~tn_edit();

  const tenon::host::Tables& tables() const { return *tables_; }
  const tn_graph& view() const { return *view_.get(); }
  tn_ctx* ctx() const { return graph_->ctx; }
  uint32_t generation() const { return graph_->edits; }

  // edit.cpp: the lists of the graph, names, notes
  Result<tn_value_id> add_input(std::string_view name, TypeRef type);
  Status remove_input(uint64_t i);
  Status add_output(std::string_view name, tn_value_id id);
  Status set_output(uint64_t i, tn_value_id id);
  Status remove_output(uint64_t i);
  Status pair_state(tn_value_id input, tn_value_id output);
  Result<tn_value_id> add_constant(std::string_view name, tn_tensor* tensor);
  // From now on small constants without a name are one where they are the same, and new nodes that
  // compute the same are one: axes, positions and masks that the pieces of many nodes each state
  // for themselves. For edits that give none a name later.
  void share() { shares_ = true; }
  // Nodes that were asked for since, in order; some perhaps more than once.
  const std::vector<tn_node_id>& asked_for() const { return asked_for_; }
  Status set_node_name(tn_node_id id, std::string_view name);
  Status set_value_name(tn_value_id id, std::string_view name);
  Status set_note(uint64_t id, std::string_view key, const tn_any& value);
  Status add_function(std::string_view domain,
                      std::string_view type,
                      const tn_graph* body,
                      const tn_graph* vjp);

  // edit_nodes.cpp: nodes and what they use
  Result<tn_node_id> add_node(const tenon::host::NodeSpec& spec);
  Status erase_node(tn_node_id id);
  Status set_input(tn_node_id id, uint64_t i, tn_value_id value);
  Status set_attr(tn_node_id id, std::string_view name, const tn_any& value);
  Status set_scope(tn_node_id id, std::string_view scope);  // 0: the default for new nodes
  Status replace_uses(tn_value_id from, tn_value_id to);

  // infer.cpp: types
  Status set_type(tn_value_id id, TypeRef type);
  Status infer(tn_node_id id);
  void retype(tn_value_id id, TypeRef type);  // nodes that use it are inferred again
  void touch(tn_node_id id);                  // infer again at commit
  void touch_uses(const tenon::host::Value& value);
  void touch_all();
  // bind.cpp: symbols of all declared types get numbers
  void substitute_declared(const tenon::host::SymbolValue& value);
  void forget_declared_sizes();  // declared types say element types alone

  // splice.cpp
  Status splice(const tn_graph& from, std::string_view scope, tn_value_id* map, uint64_t n_pairs);
  Status decompose(tn_node_id id);
  using ValueMap = std::unordered_map<tn_value_id, tn_value_id>;  // theirs, ours
  Status copy_imports(const tn_graph& from);  // functions, and versions of operators
  Status copy_node(const tn_graph& from,
                   const tenon::host::Node& node,
                   std::string_view scope,
                   ValueMap& map);

  // commit.cpp: on success the graph is what this edit made of it. Not the end of the object.
  Status commit();

 private:
  using Indexed = std::shared_ptr<tenon::host::NameIndex> tenon::host::Tables::*;

  void retire(std::shared_ptr<const void> payload) { retired_.push_back(std::move(payload)); }
  std::string free_name(Indexed names, std::string_view base);
  void claim(Indexed names, const tenon::host::Text& name, uint64_t id);
  void unclaim(Indexed names, std::string_view name, uint64_t id);
  // Under another name; held is the object's own.
  void rename(Indexed names, uint64_t id, tenon::host::Text& held, std::string_view name);
  bool taken(std::string_view value_name);  // a value whose node was erased gives its name away
  tn_value_id new_value(std::string_view name, tenon::host::Value value);
  void drop_value(tn_value_id id);
  void add_use(tn_value_id id, tn_node_id node, uint32_t input);
  void remove_use(tn_value_id id, tn_node_id node, uint32_t input);
  void undo_nodes(size_t n_kept);  // erases the newest nodes
  Status check_inputs(const tenon::host::NodeSpec& spec) const;
  tn_node_id added_like(const tenon::host::NodeSpec& spec) const;

  std::vector<const tenon::host::Type*> types_of(const tenon::host::Node& node) const;
  Result<std::vector<TypeRef>> infer_types(tn_node_id id);
  Result<std::vector<TypeRef>> infer_by_row(tn_node_id id, const tenon::host::OpRow& row);
  Result<std::vector<TypeRef>> infer_by_axes(const tenon::host::Node& node,
                                             const tenon::host::OpRow& row);
  Result<std::vector<TypeRef>> infer_by_shape(tn_node_id id, const tenon::host::OpRow& row);
  Result<std::vector<TypeRef>> infer_by_body(tn_node_id id, const tenon::host::Function& function);
  const tenon::host::Function* function(std::string_view domain, std::string_view type) const;

  Status sort();
  Status infer_touched();
  Status drop_unused();
  tn_value_id* constant_like(const tn_tensor& tensor);
  Result<tn_value_id> copy_value(const tn_graph& from, tn_value_id theirs, ValueMap& map);
  Result<std::vector<tn_value_id>> expand(tn_node_id id);

  tenon::host::Ref<tn_graph> graph_;
  std::shared_ptr<tenon::host::Tables> tables_;
  tenon::host::Ref<tn_graph> view_;
  std::vector<std::shared_ptr<const void>> retired_;
  std::vector<uint8_t> touched_;  // by node slot
  std::vector<tn_value_id> orphans_;
  std::unordered_map<std::string, uint64_t> suffixes_;  // by base name: where to look on
  bool shares_ = false;
  std::vector<tn_node_id> asked_for_;
  std::unordered_set<tn_node_id> shared_;
  std::unordered_map<std::string, tn_value_id> small_constants_;
  tenon::host::Text scope_;
  tn_node_id inferring_ = 0;
  std::vector<TypeRef> pending_;    // what the shape column of `inferring_` has set
  const tn_edit* outer_ = nullptr;  // of the call whose function body this edit infers
};

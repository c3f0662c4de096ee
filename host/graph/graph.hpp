// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data of a graph. Nodes and values live in slots; an id is a slot's number and generation, so
// that a stale one is found out. All of a graph's state is one Tables value, shared by its clones
// and never changed: an edit (edit.hpp) works on a copy, whose slots share their payloads until
// they are written to, and commit swaps it in.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tenon/host/graph.h"

#include "graph/attributes.hpp"
#include "graph/names.hpp"
#include "services/boundary.hpp"
#include "services/counted.hpp"
#include "services/session.hpp"
#include "types/value_type.hpp"
#include "values/tensor.hpp"

namespace tenon::host {

struct Use {
  tn_node_id node;
  uint32_t input;
};

struct Value {
  Text name;
  TypeRef type = unknown_type();
  TypeRef inferred = unknown_type();  // of a node's output
  TypeRef declared;  // what a reader said, or NULL: fills in what inference leaves open
  Ref<tn_tensor> constant;
  tn_node_id producer = 0;
  uint32_t out_index = 0;
  uint32_t as_output = 0;  // how many outputs of the graph it is
  bool is_input = false;
  std::vector<Use> uses;
  NamedAnys notes;
};

struct Node {
  std::string domain;
  std::string type;
  Text name;
  Text scope;
  std::vector<tn_value_id> inputs;  // 0: absent
  std::vector<tn_value_id> outputs;
  NamedAnys attrs;
  NamedAnys notes;
};

// Payloads by id. kTag is 0 for nodes and bit 63 for values.
template <class T, uint64_t kTag>
class Slots {
 public:
  const T* find(uint64_t id) const {
    const Slot* slot = at(id);
    return slot ? slot->data.get() : nullptr;
  }
  // Whether no copy of these slots shares the payload.
  bool is_own(uint64_t id) const {
    const Slot* slot = at(id);
    return slot && slot->data.use_count() == 1;
  }
  // For writing: what others share is copied first.
  T* edit(uint64_t id) {
    auto* slot = const_cast<Slot*>(at(id));
    if (!slot) return nullptr;
    if (slot->data.use_count() != 1) slot->data = std::make_shared<T>(*slot->data);
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the last other release
    return slot->data.get();
  }
  uint64_t add(T data, uint32_t generation) {
    uint64_t slot = slots_.size();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot] = {generation, std::make_shared<T>(std::move(data))};
    return kTag | uint64_t{generation} << 32 | (slot + 1);
  }
  // The slot can be used again after recycle(): two ids of one edit never share a slot.
  std::shared_ptr<T> remove(uint64_t id) {
    freed_.push_back(static_cast<uint32_t>(index(id)));
    return std::move(slots_[index(id)].data);
  }
  void recycle() {
    free_.insert(free_.end(), freed_.rbegin(), freed_.rend());
    freed_.clear();
  }
  static size_t index(uint64_t id) { return static_cast<size_t>((id & 0xffffffffu) - 1); }
  size_t capacity() const { return slots_.size(); }

 private:
  struct Slot {
    uint32_t generation = 0;
    std::shared_ptr<T> data;
  };
  const Slot* at(uint64_t id) const {
    if ((id >> 63) != (kTag >> 63) || index(id) >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index(id)];
    bool current = slot.data && slot.generation == (id >> 32 & 0x7fffffffu);
    return current ? &slot : nullptr;
  }
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> freed_;
};

inline constexpr uint64_t kValueTag = uint64_t{1} << 63;

// + domain: which version of its operators the graph imports.
inline constexpr std::string_view kVersionNote = "opset.";

struct Output {
  Text name;  // what the world sees
  tn_value_id value;
};

struct Function {
  std::string domain;
  std::string type;
  std::shared_ptr<tn_graph> body;
  std::shared_ptr<tn_graph> vjp;  // or NULL
};

struct Tables {
  Slots<Node, 0> nodes;
  Slots<Value, kValueTag> values;
  std::vector<tn_node_id> order;  // topological, except within an edit
  std::vector<tn_value_id> constants;
  std::vector<tn_value_id> inputs;
  std::vector<Output> outputs;
  std::vector<std::pair<tn_value_id, tn_value_id>> states;
  std::vector<Function> functions;
  NamedAnys notes;
  // Shared with the tables that this was copied from until a name changes.
  std::shared_ptr<NameIndex> node_names = std::make_shared<NameIndex>();
  std::shared_ptr<NameIndex> value_names = std::make_shared<NameIndex>();

  const Function* function(std::string_view domain, std::string_view type) const;
  tn_value_id find_value(std::string_view name) const;
  const NamedAnys* notes_of(uint64_t id) const;  // NULL for a stale id
};

// Failures for an id that finds nothing.
Status stale_node(tn_node_id id);
Status stale_value(tn_value_id id);
// "node fc1 (Gemm)", "com.acme:Foo": for messages.
std::string op_text(std::string_view domain, std::string_view type);
std::string node_text(const Node& node);

tn_graph* new_graph(tn_ctx* ctx, std::shared_ptr<const Tables> tables);
tn_graph* clone(const tn_graph& graph);
// The same nodes, names and types; reads none of the constants' elements.
tn_graph* without_constants(const tn_graph& graph);
// A clone that cannot be edited: bodies in attributes and functions.
std::shared_ptr<tn_graph> snapshot(const tn_graph& graph);

// The attribute, or the default of the operator's row, or TN_ANY_NONE.
tn_any attribute(const tn_graph& graph, const Node& node, std::string_view name);

// The rest of the service, each in a file of its own.
Result<tn_graph*> bind_types(const tn_graph& graph,
                             const std::vector<TypeRef>& inputs);  // bind.cpp
// with_notes: inputs keep the notes of their values, as the numbers that inference knows; for parts
// of a graph whose sizes will not change.
Result<tn_graph*> extract(const tn_graph& graph,
                          const tn_node_id* nodes,
                          uint64_t n,
                          bool with_notes = false);

const tn_host_graph* graph_service();

}  // namespace tenon::host

struct tn_graph : tenon::host::Counted<tn_graph, tenon::host::Held::kGraph> {
  tn_graph(tn_ctx* of, std::shared_ptr<const tenon::host::Tables> state)
      : Counted(of), ctx(of), tables(std::move(state)) {}

  tn_ctx* ctx;
  std::shared_ptr<const tenon::host::Tables> tables;
  std::atomic<bool> in_edit{false};
  bool live_view = false;  // of an edit that goes on: its tables still change
  bool frozen = false;
  uint32_t edits = 0;  // how many were begun: the generation of what an edit makes
};

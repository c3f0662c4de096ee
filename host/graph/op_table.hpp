// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operator table: rows that plugins bring, checked and parsed once when they are added. Rows
// never move and live as long as the table. Any thread.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tenon/host/op.h"
#include "tenon/host/op_columns.h"
#include "tenon/role/op.h"

#include "graph/attributes.hpp"
#include "languages/axes.hpp"
#include "languages/columns.hpp"
#include "languages/expr.hpp"

namespace tenon::host {

struct Node;
struct OpRow;
struct Tables;

struct AttrSpec {
  std::string name;
  std::string type;  // int float string ints floats strings tensor graph dtype bool
  AnyRef fallback;   // the default, or NULL
};

struct OpRow {
  OpRow();
  ~OpRow();
  OpRow(const OpRow&) = delete;
  OpRow& operator=(const OpRow&) = delete;

  tn_op op{};     // what the host hands out: its functions call those of `given`, and name faults
  tn_op given{};  // a full-size copy of the plugin's
  tn_ctx* owner = nullptr;
  std::optional<Axes> axes;
  tn_axes axes_view{};
  std::optional<Expr> expr;
  std::optional<std::vector<bool>> needed;  // inputs by position, where axes or expr say which
  std::vector<AttrSpec> attributes;
  Columns columns;
  tn_op_columns columns_view{};

  static const OpRow* of(const tn_op* op);  // whose `op` it is; NULL: none of a live row

  const AttrSpec* attribute(std::string_view name) const;
  std::string text() const;  // "com.acme:Foo"
  // Where each label stands in a node of this operator.
  Parsed<AxesLayout> layout(const tn_graph& graph, const Node& node) const;
  // The expr bound to a node; one program per set of attributes, inputs and type, kept.
  Result<const tn_expr_program*> program(const tn_graph& graph, const Node& node) const;

 private:
  struct Program {
    std::unique_ptr<ExprProgram> owned;
    tn_expr_program view{};
  };
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, Program> programs_;
};

// visit.template operator()<&tn_op::shape>("shape"), and so on for each function of a row (the list
// comes from the role header).
template <class Visitor>
void each_function(Visitor&& visit) {
#define TN_OP_FUNCTION(name) visit.template operator()<&tn_op::name>(#name);
#include "op_functions.inc"
#undef TN_OP_FUNCTION
}

class OpTable {
 public:
  static constexpr uint64_t kNewest = UINT64_MAX;
  // Loads plugins that may bring the row. Set before the table is used.
  std::function<void(std::string_view domain, std::string_view type, uint64_t version)> on_missing;

  // All rows or none: refuses a row whose columns do not parse, and a second one of the same
  // domain, type and version. self: what their functions get.
  Status add(std::span<const tn_op> rows, tn_ctx* owner, void* self);
  Status add(const tn_op* row, tn_ctx* owner) { return add({row, 1}, owner, nullptr); }
  // Takes back what one owner has added, before anybody has looked for it.
  void drop(const tn_ctx* owner);
  // The newest row up to this version. Asks `on_missing` for one that is not there, once, and looks
  // again.
  const OpRow* find(std::string_view domain,
                    std::string_view type,
                    uint64_t version = kNewest) const;
  // Of the version that the graph's note "opset.DOMAIN" asks for.
  const OpRow* find(const Tables& graph, std::string_view domain, std::string_view type) const;
  // For messages: " (did you mean 'Relu'?)", or empty when no row has a name like it.
  std::string hint(std::string_view name) const;  // "Relux", "acme.Foo"
  // For messages: why find() gave none for this graph, behind a semicolon.
  std::string why_none(const Tables& graph, std::string_view domain, std::string_view type) const;
  uint64_t size() const;
  const OpRow* at(uint64_t i) const;  // sorted by domain, type and version

 private:
  // Texts of the row's plugin, and the version.
  using Key = std::tuple<std::string_view, std::string_view, uint64_t>;
  using Name = std::pair<std::string_view, std::string_view>;
  struct NameHash {
    size_t operator()(const Name& name) const {
      const std::hash<std::string_view> hash;
      return hash(name.first) * 31 + hash(name.second);
    }
  };
  const OpRow* look(std::string_view domain, std::string_view type, uint64_t version) const;
  void index();
  mutable std::shared_mutex mutex_;
  std::map<Key, std::unique_ptr<OpRow>> rows_;
  // Of each operator its rows, the newest last: each node of each commit asks.
  std::unordered_map<Name, std::vector<const OpRow*>, NameHash> by_name_;
};

// An attribute's value in the form that the operator's row states: an int given for a float becomes
// one, and so on.
Result<AnyRef> own_attribute(const tn_edit& edit,
                             std::string_view domain,
                             std::string_view type,
                             std::string_view name,
                             const tn_any& value);
// The integer attributes of a node that an axes signature names; graph and node outlive it.
AxesAttributes axes_attributes(const tn_graph& graph, const Node& node);
// Whether a value has the type that a row states by its word.
bool has_type(const tn_any& value, std::string_view word);

const tn_host_op* op_service();
const tn_host_op_columns* op_columns_service();

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "graph/op_table.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "graph/edit.hpp"
#include "services/status_object.hpp"
#include "types/infer_rules.hpp"
#include "values/json_any.hpp"

namespace tenon::host {
namespace {

struct Word {
  std::string_view word;
  uint32_t tag;
};
// What the attributes column can say of a type.
constexpr std::array kWords{
    Word{"int", TN_ANY_I64},       Word{"float", TN_ANY_F64},   Word{"string", TN_ANY_TEXT},
    Word{"ints", TN_ANY_I64S},     Word{"floats", TN_ANY_F64S}, Word{"strings", TN_ANY_TEXTS},
    Word{"tensor", TN_ANY_TENSOR}, Word{"graph", TN_ANY_GRAPH}, Word{"dtype", TN_ANY_DTYPE},
    Word{"bool", TN_ANY_BOOL},
};

uint32_t tag_of(std::string_view word) {
  auto at = std::find_if(kWords.begin(), kWords.end(), [&](Word row) { return row.word == word; });
  return at == kWords.end() ? TN_ANY_NONE : at->tag;
}

// A value in the form that a row states: an int where a float belongs becomes one, and so on.
Any adapted(Any value, std::string_view word) {
  tn_any any = value.get();
  uint32_t tag = tag_of(word);
  if (any.tag == TN_ANY_I64 && tag == TN_ANY_F64) return Any::f64(static_cast<double>(any.v.i));
  if (any.tag == TN_ANY_I64 && tag == TN_ANY_BOOL) return Any::boolean(any.v.i != 0);
  if (any.tag == TN_ANY_BOOL && tag == TN_ANY_I64) return Any::i64(any.v.i);
  bool empty = any.len == 0 && any.tag >= TN_ANY_I64S && any.tag <= TN_ANY_TEXTS;
  if (empty && tag == TN_ANY_I64S) return Any::i64s({});
  if (empty && tag == TN_ANY_TEXTS) return Any::texts({});
  if ((empty || any.tag == TN_ANY_I64S) && tag == TN_ANY_F64S) {
    const auto* ints = static_cast<const int64_t*>(any.v.p);
    return Any::f64s(empty ? std::vector<double>() : std::vector<double>(ints, ints + any.len));
  }
  if (any.tag == TN_ANY_TEXT && tag == TN_ANY_DTYPE) {
    std::optional<uint32_t> dtype =
        read_dtype({static_cast<const char*>(any.v.p), static_cast<size_t>(any.len)});
    tn_any made{TN_ANY_DTYPE, 0, 1, {.u = dtype.value_or(TN_DTYPE_NONE)}};
    if (dtype) return std::move(*Any::copy_of(made));
  }
  return value;
}

Status check_names(const Json& item, const AttrSpec& spec, const std::vector<AttrSpec>& before) {
  constexpr std::string_view kMembers[] = {"name", "type", "default", "help"};
  for (const auto& [member, value] : item.items())
    if (std::ranges::find(kMembers, member) == std::end(kMembers))
      return invalid(cat("attributes: unknown member ", member, did_you_mean(member, kMembers)));
  if (!spec.name.empty() && !std::ranges::count(before, spec.name, &AttrSpec::name)) return {};
  return invalid(cat("attributes: expected each name once, got '", spec.name, "'"));
}

Result<std::vector<AttrSpec>> read_attributes(std::string_view text) {
  std::vector<AttrSpec> specs;
  if (text.empty()) return specs;
  TN_TRY(json, parse_json(text, "attributes"));
  if (!json.is_array()) return invalid("attributes: expected a JSON array of objects");
  for (const Json& item : json) {
    auto has_text = [&](const char* key) { return item.contains(key) && item[key].is_string(); };
    if (!item.is_object() || !has_text("name") || !has_text("type"))
      return invalid("attributes: expected objects with the texts name and type");
    AttrSpec spec{item["name"], item["type"], nullptr};
    TN_CHECK(check_names(item, spec, specs));
    if (tag_of(spec.type) == TN_ANY_NONE)
      return invalid(cat("attribute ", spec.name, ": unknown type ", spec.type));
    if (item.contains("default") && !item["default"].is_null()) {
      Any fallback = adapted(any_of_json(item["default"]), spec.type);
      if (fallback.tag() != tag_of(spec.type))
        return invalid(cat("attribute ", spec.name, ": default: expected ", spec.type, ", got ",
                           any_text(fallback.get())));
      spec.fallback = std::make_shared<const Any>(std::move(fallback));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string number_key(const tn_any& value) {
  std::string key(reinterpret_cast<const char*>(&value.v), sizeof value.v);
  if (value.tag == TN_ANY_TEXT) key.assign(static_cast<const char*>(value.v.p), value.len);
  return cat(value.tag, ":", key.size(), ":", key);  // so that a text cannot look like two
}

ExprAttribute expr_attribute(const tn_any& value) {
  if (value.tag == TN_ANY_I64 || value.tag == TN_ANY_BOOL) return value.v.i;
  if (value.tag == TN_ANY_F64) return value.v.f;
  if (value.tag == TN_ANY_TEXT) return std::string(static_cast<const char*>(value.v.p), value.len);
  return {};
}

ExprType expr_type(uint32_t dtype) {
  uint32_t bits = TN_DTYPE_BITS(dtype);
  if (dtype == TN_BOOL) return {TN_EXPR_DOMAIN_UINT, 1};
  if (dtype == TN_DTYPE_NONE) return {};
  if (TN_DTYPE_CODE(dtype) == kDLInt) return {TN_EXPR_DOMAIN_INT, bits};
  if (TN_DTYPE_CODE(dtype) == kDLUInt) return {TN_EXPR_DOMAIN_UINT, bits};
  return {};
}

// A plugin may ask with a row of its own, which only looks like one of the host's.
struct LiveRows {
  std::shared_mutex lock;
  std::unordered_map<const tn_op*, const OpRow*> rows;
};

LiveRows& live_rows() {
  static LiveRows rows;
  return rows;
}

}  // namespace

bool has_type(const tn_any& value, std::string_view word) {
  return tag_of(word) == value.tag;
}

Result<AnyRef> own_attribute(const tn_edit& edit,
                             std::string_view domain,
                             std::string_view type,
                             std::string_view name,
                             const tn_any& value) {
  Result<AnyRef> made = own(value, name);
  if (!made) return own(value, cat(op_text(domain, type), ": attribute ", name)).status();
  AnyRef owned = *made;
  const OpRow* row = edit.ctx()->session->ops->find(edit.tables(), domain, type);
  const AttrSpec* spec = row ? row->attribute(name) : nullptr;
  if (!spec || has_type(value, spec->type)) return owned;
  return std::make_shared<const Any>(adapted(*owned, spec->type));
}

OpRow::OpRow() {
  std::unique_lock hold(live_rows().lock);
  live_rows().rows.emplace(&op, this);
}

OpRow::~OpRow() {
  std::unique_lock hold(live_rows().lock);
  live_rows().rows.erase(&op);
}

const OpRow* OpRow::of(const tn_op* op) {
  std::shared_lock hold(live_rows().lock);
  auto found = live_rows().rows.find(op);
  return found == live_rows().rows.end() ? nullptr : found->second;
}

const AttrSpec* OpRow::attribute(std::string_view name) const {
  for (const AttrSpec& spec : attributes)
    if (spec.name == name) return &spec;
  return nullptr;
}

AxesAttributes axes_attributes(const tn_graph& graph, const Node& node) {
  return [graph = &graph, node = &node](std::string_view name) -> std::optional<int64_t> {
    tn_any any = attribute(*graph, *node, name);
    return any.tag == TN_ANY_I64 ? std::optional(any.v.i) : std::nullopt;
  };
}

std::string OpRow::text() const {
  return op_text(view(op.domain), view(op.type));
}

Parsed<AxesLayout> OpRow::layout(const tn_graph& graph, const Node& node) const {
  AxesRanks ranks;
  for (tn_value_id id : node.inputs) {
    const Value* value = graph.tables->values.find(id);
    if (value && value->type->rank == TN_RANK_UNKNOWN)
      return ParseError{1, "inputs of known rank", cat("value ", *value->name)};
    ranks.push_back(value ? std::optional(value->type->rank) : std::nullopt);
  }
  return axes->layout(ranks, axes_attributes(graph, node));
}

Result<const tn_expr_program*> OpRow::program(const tn_graph& graph, const Node& node) const {
  if (!expr) return not_found(cat(text(), ": the row has no expr"));
  std::vector<const Type*> types;
  ExprBinding binding;
  for (tn_value_id id : node.inputs) {
    const Value* value = graph.tables->values.find(id);
    types.push_back(value ? value->type.get() : nullptr);
    binding.present.push_back(value != nullptr);
  }
  binding.type = expr_type(compute_dtype(types));
  std::string key = cat(binding.type.domain, ",", binding.type.bits, ",");
  for (bool present : binding.present)
    key += present ? '1' : '0';
  for (const std::string& name : expr->attributes()) {
    key += cat("|", number_key(tenon::host::attribute(graph, node, name)));
  }
  std::lock_guard lock(mutex_);
  if (auto at = programs_.find(key); at != programs_.end()) return &at->second.view;
  binding.attribute = [&](std::string_view name) {
    return expr_attribute(tenon::host::attribute(graph, node, name));
  };
  Parsed<ExprProgram> bound = expr->bind(binding);
  if (!bound) return invalid(cat("expr: ", bound.error().text()));
  Program& kept = programs_[key];
  kept.owned = std::make_unique<ExprProgram>(std::move(*bound));
  kept.view = kept.owned->view();
  return &kept.view;
}

namespace {

Status read_columns(OpRow& row) {
  bool is_cheap = (row.op.traits & (TN_OP_POINTWISE | TN_OP_VIEW)) != 0;
  ColumnScope scope;
  if (row.axes && !row.axes->is_pointwise()) scope.n_inputs = row.axes_view.n_inputs;
  scope.has_attribute = [&](std::string_view name) { return row.attribute(name) != nullptr; };
  auto take = [](std::string_view column, auto parsed, auto& into) -> Status {
    if (!parsed) return invalid(cat(column, ": ", parsed.error().text()));
    into = std::move(*parsed);
    return {};
  };
  Columns& to = row.columns;
  TN_CHECK(take("quant", parse_quant(view(row.op.quant), scope), to.quant));
  TN_CHECK(take("cast", parse_cast(view(row.op.cast), scope), to.cast));
  TN_CHECK(take("recompute", parse_recompute(view(row.op.recompute), is_cheap), to.recompute));
  TN_CHECK(take("coupling", parse_coupling(view(row.op.coupling), scope), to.coupling));
  row.columns_view = to.view();
  return {};
}

// What stands in a row that the host hands out, instead of a plugin's function: self is the OpRow.
template <auto column>
struct Named;
template <class... Args, tn_status* (TN_CALL* tn_op::*column)(void*, Args...)>
struct Named<column> {
  static tn_status* TN_CALL call(void* self, Args... args) {
    const auto& row = *static_cast<const OpRow*>(self);
    tn_status* answer = (row.given.*column)(row.given.self, args...);
    if (!answer || answer->code != TN_INTERNAL) return answer;
    std::string_view function;
    each_function([&]<auto other>(std::string_view name) {
      if constexpr (std::is_same_v<decltype(other), decltype(column)>)
        if (other == column) function = name;
    });
    return blame(answer, row.owner ? row.owner->id : "", function, cat("operator ", row.text()));
  }
};

Result<std::unique_ptr<OpRow>> read_row(const tn_op& op, tn_ctx* owner, void* self) {
  auto row = std::make_unique<OpRow>();
  row->op = row->given = op;
  row->op.self = row.get();
  row->given.self = self;
  each_function([&]<auto column>(std::string_view) {
    if (row->op.*column) row->op.*column = Named<column>::call;
  });
  row->owner = owner;
  if (view(row->op.type).empty()) return invalid("operator row: expected a type, got an empty one");
  std::string what = cat("operator ", row->text(), ": ");
  if (row->op.axes.len > 0) {
    Parsed<Axes> axes = Axes::parse(view(row->op.axes));
    if (!axes) return invalid(cat(what, "axes: ", axes.error().text()));
    row->axes = std::move(*axes);
    row->axes_view = row->axes->view();
  }
  if (row->op.expr.len > 0) {
    Parsed<Expr> expr = Expr::parse(view(row->op.expr));
    if (!expr) return invalid(cat(what, "expr: ", expr.error().text()));
    row->expr = std::move(*expr);
    if (!(row->op.traits & TN_OP_POINTWISE))
      return invalid(cat(what, "expr: expected the trait TN_OP_POINTWISE beside it"));
  }
  if (row->axes && !row->axes->is_pointwise()) {
    row->needed.emplace();
    for (const auto& operand : std::span(row->axes_view.operands, row->axes_view.n_inputs))
      row->needed->push_back(!(operand.flags & TN_AXES_OPERAND_OPTIONAL));
  } else if (row->expr) {
    row->needed = row->expr->inputs();
  }
  Result<std::vector<AttrSpec>> attributes = read_attributes(view(row->op.attributes));
  if (!attributes)
    return Status{TN_INVALID_ARGUMENT, cat(what, "row"), "host", attributes.status()};
  row->attributes = std::move(*attributes);
  if (Status wrong = read_columns(*row); !wrong.ok()) return invalid(cat(what, wrong.text()));
  return row;
}

}  // namespace

Status OpTable::add(std::span<const tn_op> rows, tn_ctx* owner, void* self) {
  std::map<Key, std::unique_ptr<OpRow>> added;
  for (const tn_op& op : rows) {
    TN_TRY(row, read_row(op, owner, self));
    std::string what = cat("operator ", row->text(), ": ");
    Key key{view(row->op.domain), view(row->op.type), row->op.since_version};
    if (!added.emplace(key, std::move(row)).second)
      return {TN_ALREADY_EXISTS, cat(what, owner ? owner->id : "", " brings it twice")};
  }
  std::unique_lock lock(mutex_);
  for (const auto& [key, row] : added) {
    auto at = rows_.find(key);
    if (at == rows_.end()) continue;
    return {TN_ALREADY_EXISTS,
            cat("operator ", row->text(), ": brought by ", owner ? owner->id : "", ", but ",
                at->second->owner ? at->second->owner->id : "", " has brought it already")};
  }
  rows_.merge(added);
  index();
  return {};
}

void OpTable::index() {
  by_name_.clear();
  for (const auto& [key, row] : rows_)
    by_name_[{std::get<0>(key), std::get<1>(key)}].push_back(row.get());
}

void OpTable::drop(const tn_ctx* owner) {
  std::unique_lock lock(mutex_);
  std::erase_if(rows_, [owner](const auto& row) { return row.second->owner == owner; });
  index();
}

const OpRow* OpTable::look(std::string_view domain, std::string_view type, uint64_t version) const {
  std::shared_lock lock(mutex_);
  auto found = by_name_.find({domain, type});
  if (found == by_name_.end()) return nullptr;
  const OpRow* newest = nullptr;
  for (const OpRow* row : found->second)
    if (row->op.since_version <= version) newest = row;
  return newest;
}

const OpRow* OpTable::find(std::string_view domain, std::string_view type, uint64_t version) const {
  const OpRow* row = look(domain, type, version);
  if (row || !on_missing) return row;
  on_missing(domain, type, version);
  return look(domain, type, version);
}

namespace {

// The version that the graph's note asks for.
uint64_t imported_version(const Tables& graph, std::string_view domain) {
  uint64_t version = OpTable::kNewest;
  for (const NamedAny& note : graph.notes) {
    std::string_view name = note.name;
    if (!name.starts_with(kVersionNote) || name.substr(kVersionNote.size()) != domain) continue;
    tn_any stated = note.value->get();
    if (stated.tag == TN_ANY_I64 && stated.v.i >= 0) version = static_cast<uint64_t>(stated.v.i);
  }
  return version;
}

}  // namespace

const OpRow* OpTable::find(const Tables& graph,
                           std::string_view domain,
                           std::string_view type) const {
  return find(domain, type, imported_version(graph, domain));
}

std::string OpTable::why_none(const Tables& graph,
                              std::string_view domain,
                              std::string_view type) const {
  if (std::shared_lock lock(mutex_); by_name_.contains({domain, type}))
    return cat("; the model imports ", domain.empty() ? "ai.onnx" : domain, " ",
               imported_version(graph, domain), ", rows begin at ",
               by_name_.at({domain, type}).front()->op.since_version);
  return cat(
      "; a plugin that brings this operator's row would make it run on the reference backend",
      hint(domain.empty() ? std::string(type) : cat(domain, ".", type)));
}

uint64_t OpTable::size() const {
  std::shared_lock lock(mutex_);
  return rows_.size();
}

const OpRow* OpTable::at(uint64_t i) const {
  std::shared_lock lock(mutex_);
  return i < rows_.size() ? std::next(rows_.begin(), static_cast<int64_t>(i))->second.get()
                          : nullptr;
}

}  // namespace tenon::host

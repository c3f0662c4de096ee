// SPDX-License-Identifier: Apache-2.0
#include "category.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "tenon/role/op.h"

#include "tenon/sdk/pattern.hpp"

namespace tenon::precision {
namespace {

struct Row {
  std::string_view word;
  Category category;
  uint32_t cast;  // in the columns of an operator
};
// The first word of a category is its name.
constexpr Row kRows[] = {
    {"low", Category::kLow, TN_CAST_LOW},
    {"fp32", Category::kFp32, TN_CAST_FP32},
    // The same here: PyTorch gives such operators an f32 result by computing in it.
    {"fp32_out", Category::kFp32, TN_CAST_FP32_OUT},
    {"promote", Category::kPromote, TN_CAST_PROMOTE},
    {"follow", Category::kFollow, TN_CAST_FOLLOW},
    {"keep", Category::kKeep, TN_CAST_KEEP},
    {"banned", Category::kBanned, TN_CAST_BANNED},
};

std::optional<Category> category_of(std::string_view word) {
  for (const Row& row : kRows)
    if (row.word == word) return row.category;
  return std::nullopt;
}

std::string all_words() {
  std::string out;
  for (const Row& row : kRows)
    out += cat(out.empty() ? "" : ", ", row.word);
  return out;
}

// What the row says for a class of devices, or for a level that has no table of its own.
std::optional<Category> stated(const tn_op_columns& columns, std::string_view device) {
  for (uint64_t i = 0; i < columns.n_casts; ++i) {
    if (view(columns.casts[i].device) != device) continue;
    for (const Row& row : kRows)
      if (row.cast == columns.casts[i].category) return row.category;
  }
  return std::nullopt;
}

// How closely a pattern fits: 2 by the node's name or path, 1 by its operator or scope, 0 not.
int fit(const std::string& pattern, Node node) {
  if (matches(pattern, node.name()) || matches(pattern, cat(node.scope(), "/", node.name())))
    return 2;
  return matches(pattern, node) ? 1 : 0;
}

tn_any cast_note(Node node) {
  tn_any out{};
  Status ignored(services.graph->note(node.graph, node.id, str(kCastNote), &out));
  return out;
}

// "fp32 float16=banned": the word for all types, then those for one.
std::optional<Category> noted(std::string_view note, std::string_view dtype) {
  std::optional<Category> out;
  while (!note.empty()) {
    size_t end = std::min(note.find(' '), note.size()), is = note.find('=');
    std::string_view word = note.substr(0, end);
    note.remove_prefix(std::min(end + 1, note.size()));
    bool is_own = is < end;
    if (is_own && word.substr(0, is) != dtype) continue;
    out = category_of(is_own ? word.substr(is + 1) : word);
    if (!out) return out;
  }
  return out;
}

// A sequence or an optional value.
bool makes_list(Node node) {
  const std::vector<Value> results = node.outputs();
  return std::ranges::any_of(results,
                             [](Value v) { return v && v.raw_type().kind != TN_KIND_TENSOR; });
}

struct List {
  const char* name;
  Category category;
  const std::vector<std::string>* patterns;
};
std::vector<List> all_lists(const Lists& lists) {
  return {{"low", Category::kLow, &lists.low},
          {"fp32", Category::kFp32, &lists.fp32},
          {"follow", Category::kFollow, &lists.follow}};
}

// What the lists say; names go before operators. No category where they say nothing.
Result<std::optional<List>> listed(Node node, const Lists& lists) {
  std::optional<List> found;
  int closest = 0;
  bool is_contradiction = false;
  std::string other;
  for (const List& list : all_lists(lists)) {
    int best = 0;
    for (const std::string& pattern : *list.patterns)
      best = std::max(best, fit(pattern, node));
    if (best == 0 || best < closest) continue;
    is_contradiction = found && best == closest;
    if (is_contradiction) other = found->name;
    found = list;
    closest = best;
  }
  if (is_contradiction)
    return invalid(cat("node ", node.name(), " is in the lists of option ", other, " and option ",
                       found->name, ": expected one of them"));
  return found;
}

}  // namespace

std::string_view category_name(Category category) {
  return std::ranges::find(kRows, category, &Row::category)->word;
}

Lists Lists::read(const Options& options) {
  std::string device = options.text("device");
  std::string dtype = options.text("dtype", device == "cuda" ? "float16" : "bfloat16");
  return {device,
          dtype,
          options.text("level", "O1"),
          options.texts("low"),
          options.texts("fp32"),
          options.texts("follow"),
          options.texts("lacking")};
}

Result<Rule> rule_of(Node node, const Lists& lists) {
  Rule rule{Category::kKeep, 0, "row"};
  const tn_op* row = node.row();
  const tn_op_columns* columns = node.columns();
  rule.own = columns ? columns->own_inputs : 0;
  TN_TRY(list, listed(node, lists));
  if (list) {
    rule.category = list->category;
    rule.by = cat("option ", list->name);
    return rule;
  }
  if (node.domain().empty() && std::ranges::count(lists.lacking, node.type()) > 0) {
    rule.category = Category::kFp32;
    rule.by = "option lacking";
    return rule;
  }
  std::string_view note = text_of(cast_note(node));
  if (!note.empty()) {
    std::optional<Category> said = noted(note, lists.dtype);
    if (!said)
      return invalid(cat("node ", node.name(), ": note ", kCastNote, ": expected one of ",
                         all_words(), ", got '", note, "'"));
    rule.category = *said;
    rule.by = "note";
    return rule;
  }
  // Bodies of control flow have types of their own, lists one that their readers and outputs of the
  // graph state, and of an unknown operator nothing is known.
  if (!row || (row->traits & TN_OP_CONTROL) || makes_list(node)) return rule;
  if (lists.level != "O1") {
    rule.category = stated(*columns, lists.level).value_or(Category::kLow);
    rule.by = cat("level ", lists.level);
    return rule;
  }
  std::optional<Category> said = stated(*columns, lists.device);
  bool is_pointwise = row->traits & TN_OP_POINTWISE;
  rule.category = said.value_or(is_pointwise ? Category::kPromote : Category::kFollow);
  return rule;
}

Status check_lists(const Lists& lists, const std::vector<Node>& nodes) {
  auto reads_numbers = [&](Node node) {  // of a type that this is about
    const std::vector<Value> inputs = node.inputs();
    return std::ranges::any_of(inputs, [&](Value v) {
      return v && (v.dtype() == TN_F32 || dtype_name(v.dtype()) == lists.dtype);
    });
  };
  for (const List& list : all_lists(lists))
    for (const std::string& pattern : *list.patterns) {
      bool fits = false, is_heeded = false;
      for (Node node : nodes) {
        if (fit(pattern, node) == 0) continue;
        fits = true;
        is_heeded = is_heeded || reads_numbers(node);
      }
      if (is_heeded) continue;
      return invalid(cat(
          "option ", list.name, ": expected patterns of nodes, operators or scopes, got '", pattern,
          fits ? "', which fits none that reads floating-point numbers" : "', which fits none"));
    }
  return {};
}

}  // namespace tenon::precision

// SPDX-License-Identifier: Apache-2.0
#include "rewriter.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::fusion {
namespace {

// The new value stands where the old one stood: same type, and dimensions that may be equal.
bool fits(const Type& old, const Type& made) {
  if (old.dtype != made.dtype || old.kind != made.kind) return false;
  if (!old.ranked) return true;
  if (!made.ranked || made.rank() != old.rank()) return false;
  for (size_t i = 0; i < old.rank(); ++i) {
    if (old.dims[i] >= 0 && made.dims[i] != old.dims[i]) return false;
  }
  return true;
}

// Nodes that the rule may take as roots.
template <class Accept>
std::vector<Node> roots_of(tn_graph* graph, const Settings& settings, const Accept& accept) {
  std::vector<Node> roots;
  for (Node node : Graph{graph}.nodes())
    if (node.domain().empty() && accept(node) && settings.covers(node)) roots.push_back(node);
  return roots;
}

template <class Apply>
Result<int64_t> each_root(tn_graph* graph,
                          const Settings& settings,
                          const std::vector<Node>& roots,
                          const Apply& apply) {
  if (roots.empty()) return int64_t{0};
  TN_TRY(edit, Edit::begin(graph));
  Rewriter rewriter(edit, settings);
  int64_t applied = 0;
  for (Node root : roots) {
    TN_CHECK(Cancel(settings.cancel).check());
    Node now = edit.node(root.id);
    if (now.n_outputs() == 0) continue;  // gone with an earlier match
    rewriter.start(now);
    TN_TRY(changed, apply(rewriter, now));
    applied += changed ? 1 : 0;
  }
  if (applied > 0) TN_CHECK(edit.commit());
  return applied;
}

// The first match of a form from `at` on, which then stands behind it.
std::optional<Match> next_match(std::span<const Pattern> forms, Node root, size_t& at) {
  while (at < forms.size()) {
    const Pattern& form = forms[at++];
    if (!form.may_start(root.type())) continue;
    if (std::optional<Match> match = form.match(root)) return match;
  }
  return std::nullopt;
}

}  // namespace

void Rewriter::start(Node root) {
  root_ = root;
  added_.clear();
}

Result<Value> Rewriter::op(std::string_view type,
                           std::vector<Value> inputs,
                           std::vector<Attr> attrs,
                           std::string_view name,
                           uint64_t n_outputs) {
  TN_TRY(node, edit_.add({.type = type,
                          .inputs = std::move(inputs),
                          .attrs = std::move(attrs),
                          .n_outputs = n_outputs,
                          .name = name.empty() ? root_.name() : name,
                          .scope = root_.scope()}));
  added_.push_back(node);
  return node.output();
}

Result<Value> Rewriter::numbers(uint32_t dtype,
                                const std::vector<int64_t>& shape,
                                const std::vector<double>& values,
                                std::string_view name) {
  if (dtype == TN_F64) return edit_.constant<double>(dtype, shape, values, name);
  if (dtype != TN_F32) return unsupported(cat("constant of type ", dtype_name(dtype)));
  return edit_.constant<float>(dtype, shape, std::vector<float>(values.begin(), values.end()),
                               name);
}

Result<Value> Rewriter::made_of(Value source, const Tensor& made, std::string_view name) {
  std::vector<Value>& known = made_of_[source.id];
  for (Value value : known) {
    const Tensor have = value.constant();
    const uint64_t bytes = services.tensor->bytes(made.get());
    if (have && value.dtype() == dtype_of(made.dl()) &&
        std::ranges::equal(shape_of(have.dl()), shape_of(made.dl())) &&
        std::memcmp(have.data<char>(), made.data<char>(), bytes) == 0)
      return value;
  }
  TN_TRY(value, edit_.constant(made, name));
  known.push_back(value);
  return value;
}

Result<Value> Rewriter::ints(const std::vector<int64_t>& values, std::string_view name) {
  return edit_.ints(values, name);
}

Result<bool> Rewriter::give_up() {
  while (!added_.empty()) {
    TN_CHECK(edit_.erase(added_.back()));
    added_.pop_back();
  }
  return false;
}

bool removable(Node node) {
  const tn_op* row = node.row();
  if (row && (row->traits & TN_OP_STATEFUL) != 0) return false;
  return !node.is_used();
}

Status Rewriter::remove_unused(std::vector<Value> values) {
  while (!values.empty()) {
    Node node = values.back().producer();
    values.pop_back();
    if (!node || !removable(node)) continue;
    for (Value input : node.inputs()) {
      if (input) values.push_back(input);
    }
    TN_CHECK(edit_.erase(node));
  }
  return {};
}

Result<bool> Rewriter::replace_as(Node root, Value with, std::string_view wanted_name) {
  Value old = root.output();
  bool made = !added_.empty() && with.producer() == added_.back();
  if (!fits(old.type(), with.type())) return give_up();
  std::string node_name(wanted_name.empty() ? root.name() : wanted_name);
  std::string value_name(old.name());
  std::vector<Value> inputs = root.inputs();
  std::erase_if(inputs, [](Value value) { return !value; });
  TN_CHECK(edit_.replace(old, with));
  TN_CHECK(edit_.erase(root));
  TN_CHECK(remove_unused(std::move(inputs)));
  if (made) {
    TN_CHECK(services.edit->set_node_name(edit_.raw, added_.back().id, str(node_name)));
    TN_CHECK(services.edit->set_value_name(edit_.raw, with.id, str(value_name)));
  }
  added_.clear();
  return true;
}

Result<int64_t> walk(tn_graph* graph,
                     const Settings& settings,
                     std::initializer_list<std::string_view> root_types,
                     Rewrite rewrite) {
  auto accept = [&](Node node) {
    return std::find(root_types.begin(), root_types.end(), node.type()) != root_types.end();
  };
  return each_root(graph, settings, roots_of(graph, settings, accept),
                   [&](Rewriter& rewriter, Node root) { return rewrite(rewriter, root); });
}

Result<std::span<const Pattern>> Patterns::forms() const {
  std::lock_guard lock(mutex_);
  if (forms_.empty()) {
    std::vector<Pattern> forms;
    for (const std::string& text : texts_) {
      TN_TRY(form, Pattern::parse(text));
      forms.push_back(std::move(form));
    }
    forms_ = std::move(forms);
  }
  return std::span<const Pattern>(forms_);
}

Result<int64_t> walk_patterns(tn_graph* graph,
                              const Settings& settings,
                              const Patterns& patterns,
                              Replace replace) {
  TN_TRY(forms, patterns.forms());
  // Most graphs have none of most rules: they are spared the edit.
  auto accept = [&](Node node) {
    size_t at = 0;
    return next_match(forms, node, at).has_value();
  };
  auto apply = [&](Rewriter& rewriter, Node root) -> Result<bool> {
    for (size_t at = 0; std::optional<Match> match = next_match(forms, root, at);) {
      TN_TRY(changed, replace(rewriter, root, *match));
      if (changed) return true;
    }
    return false;
  };
  return each_root(graph, settings, roots_of(graph, settings, accept), apply);
}

}  // namespace tenon::fusion

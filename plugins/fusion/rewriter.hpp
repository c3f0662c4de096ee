// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a local rule gets: one edit for the whole walk over the graph. replace() puts a value in the
// place of a node's output, which keeps the node's and the value's names; what fed the node and
// is of no more use goes too.

#include <initializer_list>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tenon/sdk/match.hpp"

#include "rule.hpp"

namespace tenon::fusion {

class Rewriter {
 public:
  Rewriter(EditView edit, const Settings& settings) : edit_(edit), settings_(settings) {}

  const Settings& settings() const { return settings_; }
  EditView edit() const { return edit_; }

  // A new node in the scope of the root; its first output of so many.
  Result<Value> op(std::string_view type,
                   std::vector<Value> inputs,
                   std::vector<Attr> attrs = {},
                   std::string_view name = {},
                   uint64_t n_outputs = 1);
  // Plain numbers, rounded to this type; float and double only, and int64.
  Result<Value> numbers(uint32_t dtype,
                        const std::vector<int64_t>& shape,
                        const std::vector<double>& values,
                        std::string_view name);
  Result<Value> ints(const std::vector<int64_t>& values, std::string_view name);
  // What a rule makes of a constant. Where it makes the same of it again, the value is the same:
  // weights that nodes share stay shared.
  Result<Value> made_of(Value source, const Tensor& made, std::string_view name);

  // False, with all that op() made for this root taken back, where the types do not fit.
  Result<bool> replace(Node root, Value with) { return replace_as(root, with, {}); }
  // The same; the new node gets this name, as the one that it does the work of (empty: root's).
  Result<bool> replace_as(Node root, Value with, std::string_view node_name);
  // Takes back what op() made for this root.
  Result<bool> give_up();

  void start(Node root);  // the engine's

 private:
  Status remove_unused(std::vector<Value> values);

  EditView edit_;
  const Settings& settings_;
  Node root_;
  std::vector<Node> added_;
  std::map<tn_value_id, std::vector<Value>> made_of_;  // by source
};

// Whether an edit may remove the node, when nothing uses it.
bool removable(Node node);

// One walk in topological order; `rewrite` says whether it changed something at that node.
using Rewrite = Result<bool> (*)(Rewriter&, Node);
Result<int64_t> walk(tn_graph* graph,
                     const Settings& settings,
                     std::initializer_list<std::string_view> root_types,
                     Rewrite rewrite);

// The forms of a rule as texts of patterns (tenon/sdk/match.hpp), read when they are first wanted.
// Thread-safe.
class Patterns {
 public:
  template <class Texts>
  explicit Patterns(const Texts& texts) : texts_(std::begin(texts), std::end(texts)) {}
  Result<std::span<const Pattern>> forms() const;

 private:
  std::vector<std::string> texts_;
  mutable std::mutex mutex_;
  mutable std::vector<Pattern> forms_;
};

// A rule of several forms, and what to do with a match.
using Replace = Result<bool> (*)(Rewriter&, Node root, const Match&);
Result<int64_t> walk_patterns(tn_graph* graph,
                              const Settings& settings,
                              const Patterns& patterns,
                              Replace replace);
// A rule that is no more than its forms and their replacement.
template <const auto& forms, Replace replace>
Result<int64_t> run_patterns(tn_graph* graph, const Settings& settings) {
  static const Patterns patterns(forms);
  return walk_patterns(graph, settings, patterns, replace);
}

}  // namespace tenon::fusion

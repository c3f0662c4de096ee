// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names in a written file. ONNX wants names unique in a graph together with the graphs around it,
// and an output's name to be its value's; bodies refer to what is around them by name.

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tenon/sdk/graph.hpp"

namespace tenon::onnx_plugin {

class ScopeNames {
 public:
  explicit ScopeNames(const ScopeNames* around) : around_(around) {}

  // Of a body, which has names around it.
  bool is_inner() const { return around_ != nullptr; }
  // A value whose name is given: an input, or what a body takes from around it.
  void bind(Value value, std::string name);
  // Gives the value this name, or one made from it that is free here and around.
  const std::string& claim(Value value, std::string_view wanted);
  bool taken(std::string_view name) const;
  bool has(Value value) const { return names_.count(value.id) != 0; }
  // Of a value that has one; absent values have the empty name.
  const std::string& of(Value value) const;

  // Constants that the graphs around have under a name already.
  void offer(const tn_tensor* tensor, const std::string& name) { offered_[tensor] = name; }
  const std::string* offered(const tn_tensor* tensor) const;

 private:
  const ScopeNames* around_;
  std::unordered_map<tn_value_id, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<const tn_tensor*, std::string> offered_;
};

}  // namespace tenon::onnx_plugin

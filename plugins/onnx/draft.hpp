// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node on its way into the graph: what the file says, with inputs found and attributes still in
// ONNX's form, so that the upgrades can rewrite it before it is added.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "model.hpp"

namespace tenon::onnx_plugin {

struct Draft {
  std::string domain;
  std::string type;
  std::string name;
  std::string scope;
  std::vector<Value> inputs;
  std::vector<onnx::AttributeProto> attrs;
  std::vector<std::string> outputs;  // empty: not asked for
  // Applied to output 0 after the node is added: what it returns becomes the output.
  std::vector<std::function<Result<Value>(const EditView&, Value)>> after;

  const onnx::AttributeProto* find(std::string_view name) const;
  void remove(std::string_view name);
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  float attr_float(std::string_view name, float fallback) const;
  std::string attr_text(std::string_view name, std::string_view fallback) const;
  // Nothing when it is absent; the attribute is gone afterwards.
  std::optional<std::vector<int64_t>> take_ints(std::string_view name);
  std::optional<std::vector<float>> take_floats(std::string_view name);
  std::optional<int64_t> take_int(std::string_view name);
  std::optional<float> take_float(std::string_view name);
  void set_int(std::string_view name, int64_t value);
  void set_text(std::string_view name, std::string_view value);

  Value input(size_t i) const { return i < inputs.size() ? inputs[i] : Value{}; }
  void set_input(size_t i, Value value);
  // "name/word": for constants and nodes that an upgrade adds.
  std::string part(std::string_view word) const;
};

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
#pragma once
// AttributeProto to tn_any. Numbers, texts and lists of them, and tensors; bodies are the
// importer's, as they need the graph around them.

#include <deque>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "model.hpp"
#include "read_tensor.hpp"

namespace tenon::onnx_plugin {

// Holds what the values point at while the node is added.
class AttrStore {
 public:
  // has_types: of an operator of ONNX or Tenon, some of whose numbers are element types.
  Status add(ModelFiles& files, const onnx::AttributeProto& attr, bool has_types);
  void add_body(std::string_view name, OwnedGraph body);
  void add_int(std::string_view name, int64_t value) { attrs_.emplace_back(name, value); }
  const std::vector<Attr>& attrs() const { return attrs_; }

 private:
  Status add_dtype(const onnx::AttributeProto& attr);
  void add_texts(const onnx::AttributeProto& attr);

  std::vector<Attr> attrs_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<tn_str>> texts_;
  std::deque<Tensor> tensors_;
  std::deque<OwnedGraph> bodies_;
};

// Whether the number in this attribute of ONNX's own operators is an element type.
bool is_dtype_attribute(std::string_view name);

// Whether ONNX states a whole type in this attribute; Optional alone has one, of which rows keep
// the element type: none for a sequence, whose own is a note.
bool is_type_attribute(std::string_view name);

// Its type, also where an old file does not state it.
onnx::AttributeProto::AttributeType type_of(const onnx::AttributeProto& attr);

}  // namespace tenon::onnx_plugin

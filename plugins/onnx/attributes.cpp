// SPDX-License-Identifier: Apache-2.0
#include "attributes.hpp"

#include <algorithm>

#include "dtypes.hpp"
#include "read_type.hpp"

namespace tenon::onnx_plugin {

using onnx::AttributeProto;

AttributeProto::AttributeType type_of(const AttributeProto& attr) {
  if (attr.type() != AttributeProto::UNDEFINED) return attr.type();
  if (attr.has_f()) return AttributeProto::FLOAT;
  if (attr.has_i()) return AttributeProto::INT;
  if (attr.has_s()) return AttributeProto::STRING;
  if (attr.has_t()) return AttributeProto::TENSOR;
  if (attr.has_g()) return AttributeProto::GRAPH;
  if (attr.floats_size()) return AttributeProto::FLOATS;
  if (attr.strings_size()) return AttributeProto::STRINGS;
  return AttributeProto::INTS;  // an empty list
}

void AttrStore::add_body(std::string_view name, OwnedGraph body) {
  bodies_.push_back(std::move(body));
  attrs_.emplace_back(name, any_graph(bodies_.back().get()));
}

bool is_dtype_attribute(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "to",        "dtype",           "output_dtype",     "stash_type",
      "precision", "output_datatype", "softmax_precision"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_type_attribute(std::string_view name) {
  return name == "type";
}

Status AttrStore::add_dtype(const AttributeProto& attr) {
  if (attr.i() == 0) return {};  // "not given", wherever it is allowed
  auto number = static_cast<int32_t>(std::clamp<int64_t>(attr.i(), -1, 1000));
  uint32_t dtype = dtype_of_onnx(number);
  if (dtype == TN_DTYPE_NONE)
    return unsupported(cat("attribute ", attr.name(), ": expected a type of numbers, got ",
                           onnx_type_text(number)));
  attrs_.emplace_back(attr.name(), any_dtype(dtype));
  return {};
}

void AttrStore::add_texts(const AttributeProto& attr) {
  std::vector<tn_str>& list = texts_.emplace_back();
  for (const std::string& text : attr.strings())
    list.push_back(str(text));
  attrs_.emplace_back(attr.name(), any_texts(list));
}

Status AttrStore::add(ModelFiles& files, const AttributeProto& attr, bool has_types) {
  switch (type_of(attr)) {
    case AttributeProto::FLOAT:
      attrs_.emplace_back(attr.name(), any_float(attr.f()));
      return {};
    case AttributeProto::INT:
      if (has_types && is_dtype_attribute(attr.name())) return add_dtype(attr);
      attrs_.emplace_back(attr.name(), any_int(attr.i()));
      return {};
    case AttributeProto::STRING:
      attrs_.emplace_back(attr.name(), any_text(attr.s()));
      return {};
    case AttributeProto::FLOATS:
      floats_.emplace_back(attr.floats().begin(), attr.floats().end());
      attrs_.emplace_back(attr.name(), any_floats(floats_.back()));
      return {};
    case AttributeProto::INTS:
      ints_.emplace_back(attr.ints().begin(), attr.ints().end());
      attrs_.emplace_back(attr.name(), any_ints(ints_.back()));
      return {};
    case AttributeProto::STRINGS:
      add_texts(attr);
      return {};
    case AttributeProto::TENSOR: {
      TN_TRY(tensor, read_tensor(files, attr.t(), cat("of attribute ", attr.name())));
      tensors_.push_back(tensor);
      attrs_.emplace_back(attr.name(), any_tensor(tensors_.back()));
      return {};
    }
    case AttributeProto::TYPE_PROTO: {
      TN_TRY(type, read_type(attr.tp()));
      const bool is_tensor = type.kind == TN_KIND_TENSOR;
      attrs_.emplace_back(attr.name(), any_dtype(is_tensor ? type.dtype : TN_DTYPE_NONE));
      return {};
    }
    default:
      return unsupported(cat("attribute ", attr.name(),
                             ": expected a number, text, list, tensor or graph, got type ",
                             static_cast<int>(attr.type())));
  }
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
#include "draft.hpp"

#include <algorithm>

namespace tenon::onnx_plugin {

const onnx::AttributeProto* Draft::find(std::string_view wanted) const {
  for (const onnx::AttributeProto& attr : attrs)
    if (attr.name() == wanted) return &attr;
  return nullptr;
}

void Draft::remove(std::string_view unwanted) {
  std::erase_if(attrs, [&](const auto& attr) { return attr.name() == unwanted; });
}

int64_t Draft::attr_int(std::string_view wanted, int64_t fallback) const {
  const onnx::AttributeProto* attr = find(wanted);
  return attr ? attr->i() : fallback;
}

float Draft::attr_float(std::string_view wanted, float fallback) const {
  const onnx::AttributeProto* attr = find(wanted);
  return attr ? attr->f() : fallback;
}

std::string Draft::attr_text(std::string_view wanted, std::string_view fallback) const {
  const onnx::AttributeProto* attr = find(wanted);
  return attr ? attr->s() : std::string(fallback);
}

std::optional<std::vector<int64_t>> Draft::take_ints(std::string_view wanted) {
  const onnx::AttributeProto* attr = find(wanted);
  if (!attr) return {};
  std::vector<int64_t> out(attr->ints().begin(), attr->ints().end());
  remove(wanted);
  return out;
}

std::optional<std::vector<float>> Draft::take_floats(std::string_view wanted) {
  const onnx::AttributeProto* attr = find(wanted);
  if (!attr) return {};
  std::vector<float> out(attr->floats().begin(), attr->floats().end());
  remove(wanted);
  return out;
}

std::optional<int64_t> Draft::take_int(std::string_view wanted) {
  const onnx::AttributeProto* attr = find(wanted);
  if (!attr) return {};
  int64_t out = attr->i();
  remove(wanted);
  return out;
}

std::optional<float> Draft::take_float(std::string_view wanted) {
  const onnx::AttributeProto* attr = find(wanted);
  if (!attr) return {};
  float out = attr->f();
  remove(wanted);
  return out;
}

void Draft::set_int(std::string_view key, int64_t value) {
  remove(key);
  onnx::AttributeProto& attr = attrs.emplace_back();
  attr.set_name(std::string(key));
  attr.set_type(onnx::AttributeProto::INT);
  attr.set_i(value);
}

void Draft::set_text(std::string_view key, std::string_view value) {
  remove(key);
  onnx::AttributeProto& attr = attrs.emplace_back();
  attr.set_name(std::string(key));
  attr.set_type(onnx::AttributeProto::STRING);
  attr.set_s(std::string(value));
}

void Draft::set_input(size_t i, Value value) {
  if (inputs.size() <= i) inputs.resize(i + 1);
  inputs[i] = value;
}

std::string Draft::part(std::string_view word) const {
  return cat(name.empty() ? type : name, "/", word);
}

}  // namespace tenon::onnx_plugin

// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <algorithm>
#include <utility>

namespace tenon::onednn {

const char* element_name(ElementType type) {
  static constexpr const char* kNames[] = {
      "f32", "bf16",     "f16",      "u8",         "s8",     "i32",        "i64",      "bool",
      "f64", "u16",      "i16",      "u32",        "u64",    "u4",         "i4",       "u2",
      "i2",  "f4e2m1fn", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu"};
  return type < ElementType::kCount ? kNames[static_cast<int>(type)] : "?";
}

bool holds_zeros(const Value& value) {
  const auto* bytes = static_cast<const int8_t*>(value.data);
  return bytes != nullptr && value.type == ElementType::kS8 &&
         std::all_of(bytes, bytes + value.count(), [](int8_t byte) { return byte == 0; });
}

std::optional<double> constant_number(const Value& value) {
  if (value.data == nullptr || value.count() != 1 || value.type != ElementType::kF32)
    return std::nullopt;
  return static_cast<double>(*static_cast<const float*>(value.data));
}

int Graph::add_input(std::string name, ElementType type, Dims dims) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  value.dims = std::move(dims);
  inputs.push_back(add_value(std::move(value)));
  return inputs.back();
}

int Graph::add_f32_like(int like, const char* what) {
  Value made;
  made.name = value(like).name + "/" + what;
  made.dims = value(like).dims;
  made.dtype = TN_F32;
  made.type = ElementType::kF32;
  made.is_known = value(like).is_known;
  return add_value(std::move(made));
}

void Graph::set_numbers(int value, std::shared_ptr<const std::vector<float>> numbers) {
  Value& constant = values[static_cast<size_t>(value)];
  constant.data = numbers->data();
  constant.keeper = {numbers, numbers->data()};
}

Node Graph::cast_node(int from, int to) const {
  return {.op = "Cast", .name = value(to).name + "/cast", .inputs = {from}, .outputs = {to}};
}

int Graph::add_constant(std::string name, ElementType type, Dims dims, const void* data) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  value.dims = std::move(dims);
  value.data = data;
  return add_value(std::move(value));
}

}  // namespace tenon::onednn

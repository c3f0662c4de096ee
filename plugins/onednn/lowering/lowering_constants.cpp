// SPDX-License-Identifier: Apache-2.0
// Constants of a plan: their numbers, those that compiling makes, and which of these stay.

#include <cstring>

#include "lowering.hpp"

namespace tenon::onednn {

const void* Lowering::constant_data(const View& constant) const {
  const char* data = static_cast<const char*>(plan_.buffers[constant.buffer].data);
  return data + constant.offset_bytes();
}

Dims Lowering::constant_integers(int value) const {
  const Value& constant = graph_.values[value];
  if (constant.data == nullptr) throw CompileError(constant.name + ": expected a constant");
  Dims numbers(static_cast<size_t>(constant.count()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    switch (constant.type) {
      case ElementType::kI64:
        numbers[i] = static_cast<const int64_t*>(constant.data)[i];
        break;
      case ElementType::kI32:
        numbers[i] = static_cast<const int32_t*>(constant.data)[i];
        break;
      case ElementType::kS8:
        numbers[i] = static_cast<const int8_t*>(constant.data)[i];
        break;
      case ElementType::kF32:
        numbers[i] = static_cast<int64_t>(static_cast<const float*>(constant.data)[i]);
        break;
      default:
        numbers[i] = static_cast<const uint8_t*>(constant.data)[i];
        break;
    }
  }
  return numbers;
}

std::vector<float> Lowering::constant_floats(int value) const {
  const Value& constant = graph_.values[value];
  if (constant.data != nullptr && constant.type == ElementType::kF32) {
    const float* data = static_cast<const float*>(constant.data);
    return {data, data + constant.count()};
  }
  Dims integers = constant_integers(value);
  return {integers.begin(), integers.end()};
}

View Lowering::make_constant(ElementType type, const Dims& dims, std::shared_ptr<const void> data) {
  View made{.type = type, .dims = dims, .strides = row_major_strides(dims)};
  made.buffer = plan_.add_buffer(
      {.kind = Buffer::Kind::kConstant, .bytes = made.bytes(), .data = data.get(), .keeper = data});
  return made;
}

Place Lowering::floats(const std::vector<float>& values) {
  std::shared_ptr<void> data = aligned_bytes(static_cast<int64_t>(values.size() * 4));
  std::memcpy(data.get(), values.data(), values.size() * 4);
  return place_of(make_constant(ElementType::kF32, {static_cast<int64_t>(values.size())}, data));
}

Place Lowering::integers(const std::vector<int32_t>& values) {
  std::shared_ptr<void> data = aligned_bytes(static_cast<int64_t>(values.size() * 4));
  std::memcpy(data.get(), values.data(), values.size() * 4);
  return place_of(make_constant(ElementType::kI32, {static_cast<int64_t>(values.size())}, data));
}

Place Lowering::packed(const View& constant,
                       const dnnl::memory::desc& from,
                       const dnnl::memory::desc& to) {
  std::shared_ptr<const void> data = store_.packed(constant_data(constant), from, to);
  int64_t bytes = static_cast<int64_t>(to.get_size());
  int buffer = plan_.add_buffer(
      {.kind = Buffer::Kind::kConstant, .bytes = bytes, .data = data.get(), .keeper = data});
  return {buffer, 0};
}

View Lowering::dequantized_constant(const View& constant) {
  std::shared_ptr<void> data = aligned_bytes(constant.count() * 4);
  float* out = static_cast<float*>(data.get());
  const unsigned char* in = static_cast<const unsigned char*>(constant_data(constant));
  int64_t inner = 1;
  int64_t n_channels = 1;
  if (constant.channels != nullptr) {
    n_channels = constant.dims[constant.channels->axis];
    for (size_t i = constant.channels->axis + 1; i < constant.dims.size(); ++i) {
      inner *= constant.dims[i];
    }
  }
  Dims axis_strides = row_major_strides(constant.dims);
  for (int64_t i = 0; i < constant.count(); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < constant.dims.size(); ++axis) {
      at += i / axis_strides[axis] % constant.dims[axis] * constant.strides[axis];
    }
    int32_t stored = constant.type == ElementType::kS8 ? static_cast<signed char>(in[at]) : in[at];
    if (constant.type == ElementType::kI32) {
      std::memcpy(&stored, in + at * 4, 4);
    }
    float scale = constant.channels != nullptr ? constant.channels->scales[i / inner % n_channels]
                                               : constant.quant.scale;
    out[i] = static_cast<float>(stored - constant.quant.zero_point) * scale;
  }
  return make_constant(ElementType::kF32, constant.dims, data);
}

std::vector<bool> buffers_in_use(const Plan& plan) {
  std::vector<bool> is_used(plan.buffers.size(), false);
  for (const Step& step : plan.steps) {
    for (const Argument& a : step.arguments)
      is_used[static_cast<size_t>(a.place.buffer)] = true;
    for (const Place& place : step.places) {
      if (place.buffer != kNone) is_used[static_cast<size_t>(place.buffer)] = true;
    }
  }
  return is_used;
}

// What only made another constant (folded or dequantized weights that were then packed) goes.
void Lowering::drop_unused_constants() {
  plan_.is_read = buffers_in_use(plan_);
  const std::vector<bool>& is_used = plan_.is_read;
  plan_.packed_bytes = 0;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    Buffer& buffer = plan_.buffers[i];
    const bool is_lost =
        buffer.kind == Buffer::Kind::kConstant && buffer.data == nullptr && buffer.bytes > 0;
    if (is_used[i] && is_lost) throw CompileError("a step reads a constant that was discarded");
    if (buffer.keeper == nullptr) continue;
    if (is_used[i])
      plan_.packed_bytes += buffer.bytes;
    else
      buffer.keeper.reset();
  }
}

}  // namespace tenon::onednn

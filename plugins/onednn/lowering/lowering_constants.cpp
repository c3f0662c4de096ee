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

namespace {

template <typename T>
void dequantize(const View& from, const T* in, float* out) {
  int64_t n_channels = 1, inner = from.count();  // numbers in a row with one scale
  if (from.channels != nullptr) {
    const auto axis = static_cast<std::ptrdiff_t>(from.channels->axis);
    n_channels = from.dims[from.channels->axis];
    inner = element_count(Dims(from.dims.begin() + axis + 1, from.dims.end()));
  }
  const bool is_plain = is_row_major(from);
  const Dims counted = row_major_strides(from.dims);
  auto place = [&](int64_t i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < from.dims.size(); ++axis)
      at += i / counted[axis] % from.dims[axis] * from.strides[axis];
    return at;
  };
  const int32_t zero = from.quant.zero_point;
  for (int64_t i = 0; i < from.count(); i += inner) {
    const float scale =
        from.channels != nullptr ? from.channels->scales[i / inner % n_channels] : from.quant.scale;
    for (int64_t k = i; is_plain && k < i + inner; ++k)
      out[k] = static_cast<float>(in[k] - zero) * scale;
    for (int64_t k = i; !is_plain && k < i + inner; ++k)
      out[k] = static_cast<float>(in[place(k)] - zero) * scale;
  }
}

}  // namespace

View Lowering::dequantized_constant(const View& constant) {
  std::shared_ptr<void> data = aligned_bytes(constant.count() * 4);
  auto* out = static_cast<float*>(data.get());
  const void* in = constant_data(constant);
  if (constant.type == ElementType::kI32)
    dequantize(constant, static_cast<const int32_t*>(in), out);
  else if (constant.type == ElementType::kS8)
    dequantize(constant, static_cast<const int8_t*>(in), out);
  else
    dequantize(constant, static_cast<const uint8_t*>(in), out);
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

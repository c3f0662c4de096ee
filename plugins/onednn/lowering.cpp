// SPDX-License-Identifier: Apache-2.0
#include "lowering.hpp"

#include <cstring>
#include <utility>

#include "handlers/handlers.hpp"
#include "kernels/pointwise.h"
#include "state_layout.hpp"
#include "strided_copy.hpp"

namespace tenon::onednn {
namespace {

Argument argument(int id, Place place, const dnnl::memory::desc& desc) {
  return {id, place, desc};
}

}  // namespace

Plan Lowering::run() {
  place_inputs_and_constants();
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (node_done_[i]) continue;
    const Node& node = graph_.nodes[i];
    const Handler* handler = find_handler(node.op);
    if (handler == nullptr) throw CompileError(node.name + ": no handler for " + node.op);
    node_done_[i] = true;
    if (makes_nothing(node)) continue;
    size_t begin = plan_.steps.size();
    handler->lower(*this, static_cast<int>(i));
    for (; begin < plan_.steps.size(); ++begin)
      plan_.steps[begin].op = node.op;
  }
  place_outputs();
  place_states();
  drop_unused_constants();
  return std::move(plan_);
}

// All results are empty: nothing is computed, but their views are there.
bool Lowering::makes_nothing(const Node& node) {
  for (int output : node.outputs) {
    if (output != kNone && graph_.values[output].count() > 0) return false;
  }
  for (int output : node.outputs) {
    if (output == kNone) continue;
    const Value& value = graph_.values[output];
    make(output, value.type, row_major_strides(value.dims));
  }
  return true;
}

void Lowering::place_inputs_and_constants() {
  plan_.input_buffers.assign(graph_.inputs.size(), kNone);
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const Value& value = graph_.values[graph_.inputs[i]];
    int buffer = plan_.add_buffer(
        {.kind = Buffer::Kind::kInput, .bytes = value.bytes(), .index = static_cast<int>(i)});
    plan_.input_buffers[i] = buffer;
    set_view(graph_.inputs[i], {.buffer = buffer,
                                .type = value.type,
                                .dims = value.dims,
                                .strides = row_major_strides(value.dims)});
  }
  for (size_t i = 0; i < graph_.states.size(); ++i) {
    int before = graph_.states[i].first;
    const Value& value = graph_.values[before];
    int buffer = plan_.add_buffer(
        {.kind = Buffer::Kind::kState, .bytes = value.bytes(), .index = static_cast<int>(i)});
    set_view(before, {.buffer = buffer,
                      .type = value.type,
                      .dims = value.dims,
                      .strides = kept_strides(graph_, before)});
  }
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& value = graph_.values[i];
    if (value.data == nullptr) continue;
    int buffer = plan_.add_buffer(
        {.kind = Buffer::Kind::kConstant, .bytes = value.bytes(), .data = value.data});
    set_view(static_cast<int>(i), {.buffer = buffer,
                                   .type = value.type,
                                   .dims = value.dims,
                                   .strides = row_major_strides(value.dims)});
  }
}

void Lowering::place_outputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    int value = graph_.outputs[i];
    const Value& shape = graph_.values[value];
    int out = static_cast<int>(i);
    View found = view(value);
    Buffer& buffer = plan_.buffers[found.buffer];
    bool fits = buffer.kind == Buffer::Kind::kArena && found.offset == 0 &&
                found.type == shape.type && !found.is_quantized() && is_row_major(found) &&
                buffer.bytes == shape.bytes();
    if (fits) {  // the step that computes it writes to the caller's memory
      buffer.kind = Buffer::Kind::kOutput;
      buffer.index = out;
      plan_.output_buffers.push_back(found.buffer);
      continue;
    }
    int target =
        plan_.add_buffer({.kind = Buffer::Kind::kOutput, .bytes = shape.bytes(), .index = out});
    plan_.output_buffers.push_back(target);
    if (found.channels != nullptr) found = dequantized_constant(found);
    add_copy("output " + shape.name, found,
             {.buffer = target,
              .type = shape.type,
              .dims = shape.dims,
              .strides = row_major_strides(shape.dims)});
  }
}

// What only made another constant (folded or dequantised weights that were then packed) goes.
void Lowering::drop_unused_constants() {
  std::vector<bool> is_used(plan_.buffers.size(), false);
  for (const Step& step : plan_.steps) {
    for (const Argument& a : step.arguments)
      is_used[static_cast<size_t>(a.place.buffer)] = true;
    for (const Place& place : step.places) {
      if (place.buffer != kNone) is_used[static_cast<size_t>(place.buffer)] = true;
    }
  }
  plan_.packed_bytes = 0;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    Buffer& buffer = plan_.buffers[i];
    if (buffer.keeper == nullptr) continue;
    if (is_used[i])
      plan_.packed_bytes += buffer.bytes;
    else
      buffer.keeper.reset();
  }
}

View Lowering::make(int value, ElementType type, const Dims& strides, kernels::Quant quant) {
  const Dims& dims = graph_.values[value].dims;
  View made{.type = type, .dims = dims, .strides = strides, .quant = quant};
  made.buffer = plan_.add_buffer({.bytes = made.bytes()});
  set_view(value, made);
  return made;
}

View Lowering::read(int value, ElementType type, const Dims& strides) {
  State& state = states_[value];
  auto matches = [&](const View& v) {
    return v.type == type && !v.is_quantized() && same_strides(v.dims, v.strides, strides);
  };
  if (matches(state.primary)) return state.primary;
  for (const View& other : state.others) {
    if (matches(other)) return other;
  }
  const View from = state.primary;
  View to{.type = type, .dims = from.dims, .strides = strides};
  if (plan_.buffers[from.buffer].kind == Buffer::Kind::kConstant && from.is_quantized()) {
    View real = dequantized_constant(from);
    if (type == ElementType::kF32 && is_row_major({.dims = from.dims, .strides = strides})) {
      states_[value].others.push_back(real);
      return real;
    }
    to = make_constant(type, from.dims, nullptr);
    to.strides = strides;
    plan_.buffers[to.buffer].keeper =
        store_.packed(constant_data(real), descriptor(real), descriptor(to));
  } else if (plan_.buffers[from.buffer].kind == Buffer::Kind::kConstant &&
             dnnl_type(from.type) != dnnl::memory::data_type::undef) {
    to = make_constant(type, from.dims, nullptr);
    to.strides = strides;
    plan_.buffers[to.buffer].keeper =
        store_.packed(constant_data(from), descriptor(from), descriptor(to));
  } else {
    to.buffer = plan_.add_buffer({.bytes = to.bytes()});
    add_copy("reorder " + graph_.values[value].name, from, to);
  }
  Buffer& buffer = plan_.buffers[to.buffer];
  if (buffer.keeper != nullptr) buffer.data = buffer.keeper.get();
  states_[value].others.push_back(to);
  return to;
}

View Lowering::read_row_major(int value, ElementType type) {
  return read(value, type, row_major_strides(graph_.values[value].dims));
}

View Lowering::read_stored(int value, const Dims& strides, ElementType type) {
  const View from = view(value);
  View to = from;
  to.type = type;
  to.strides = strides;
  to.offset = 0;
  if (type != from.type) to.quant.zero_point -= 128;  // u8 as s8
  auto matches = [&](const View& v) {
    return v.type == type && v.channels == to.channels && v.quant.scale == to.quant.scale &&
           same_strides(v.dims, v.strides, strides);
  };
  if (matches(from)) return from;
  for (const View& other : states_[value].others)
    if (matches(other)) return other;
  to.buffer = scratch(to.bytes());
  // Codes of one type move as they are; a change of type keeps what they mean.
  View source = from;
  View target = to;
  if (type == from.type) source.quant = target.quant = {};
  source.channels = target.channels = nullptr;
  add_copy("reorder " + graph_.values[value].name, source, target);
  states_[value].others.push_back(to);
  return to;
}

View Lowering::read_real(int value) {
  const View& found = view(value);
  bool is_real = found.type == ElementType::kF32 || found.type == ElementType::kBf16;
  if (is_real) return found;
  return read(value, real_type(), dense_strides_like(found.dims, found.strides));
}

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

bool Lowering::dies_with(const View& dying, int node) const {
  return plan_.buffers[dying.buffer].kind == Buffer::Kind::kArena && !is_read_after(dying, node);
}

bool Lowering::is_read_after(const View& dying, int node) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    bool uses_buffer = states_[i].primary.buffer == dying.buffer;
    for (const View& other : states_[i].others)
      uses_buffer |= other.buffer == dying.buffer;
    if (!uses_buffer) continue;
    if (graph_.values[i].n_outputs > 0) return true;
    for (int user : graph_.values[i].users) {
      if (user != node && !node_done_[user]) return true;
    }
  }
  return false;
}

void Lowering::add_primitive(std::string name,
                             const char* kernel,
                             const dnnl::primitive& primitive,
                             const dnnl::memory::desc& scratchpad,
                             std::vector<Argument> arguments,
                             double flops) {
  Step step{.name = std::move(name), .kernel = kernel, .flops = flops, .primitive = primitive};
  for (const Argument& a : arguments)
    step.bytes += static_cast<double>(a.desc.get_size());
  int64_t scratch_bytes = static_cast<int64_t>(scratchpad.get_size());
  if (scratch_bytes > 0) {
    arguments.push_back(argument(DNNL_ARG_SCRATCHPAD, {scratch(scratch_bytes), 0}, scratchpad));
  }
  step.arguments = std::move(arguments);
  add_step(std::move(step));
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

void Lowering::add_copy(const std::string& name, const View& from, const View& to) {
  ++plan_.n_reorders;
  bool known = dnnl_type(from.type) != dnnl::memory::data_type::undef &&
               dnnl_type(to.type) != dnnl::memory::data_type::undef;
  bool moves_only = !from.is_quantized() && !to.is_quantized();
  bool repeats = false;
  for (size_t i = 0; i < from.dims.size(); ++i)
    repeats |= from.dims[i] != 1 && from.strides[i] == 0;
  if (from.type == to.type && moves_only &&
      (!known || repeats || from.count() == 0 || interleaves(from) || is_turned(from, to))) {
    add_step(strided_copy(name, from, to));
    return;
  }
  if (known && moves_only && !repeats && from.count() > 0) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::memory::desc src = descriptor(from);
    dnnl::memory::desc dst = descriptor(to);
    dnnl::reorder::primitive_desc pd(engine(), src, engine(), dst, attr);
    add_primitive(name, pd.impl_info_str(), dnnl::reorder(pd), pd.scratchpad_desc(),
                  {{DNNL_ARG_FROM, place_of(from), src}, {DNNL_ARG_TO, place_of(to), dst}}, 0);
    return;
  }
  if (from.channels != nullptr)
    throw CompileError(name + ": per-channel data that is not constant");
  const tn_expr_node same{TN_EXPR_INPUT, 0, 0, 0, 0};
  const uint32_t result = 0;
  const kernels::PointwiseEdge src{from.type, from.quant, from.strides};
  const kernels::PointwiseEdge dst{to.type, to.quant, to.strides};
  auto plan = std::make_shared<kernels::PointwisePlan>();
  std::string why = plan->make({.nodes = {&same, 1},
                                .results = {&result, 1},
                                .dims = to.dims,
                                .inputs = {&src, 1},
                                .outputs = {&dst, 1}});
  if (!why.empty()) throw CompileError(name + ": " + why);
  Step step{.name = name, .kernel = "tenon:convert (" + plan->how() + ")", .always_succeeds = true};
  step.bytes = static_cast<double>(from.bytes() + to.bytes());
  step.places = {place_of(from), place_of(to)};
  step.kernel_function = [plan](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    plan->run(context, std::span<const void* const>(pointers, 1),
              std::span<void* const>(pointers + 1, 1));
    return nullptr;
  };
  add_step(std::move(step));
}

}  // namespace tenon::onednn

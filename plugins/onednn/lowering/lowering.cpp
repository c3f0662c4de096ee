// SPDX-License-Identifier: Apache-2.0
#include "lowering.hpp"

#include <string_view>
#include <utility>

#include "cpu.hpp"
#include "handler.hpp"
#include "kernels/pointwise.h"
#include "state_layout.hpp"
#include "strided_copy.hpp"

namespace tenon::onednn {
namespace {

// A page: looking for who reads a smaller constant costs more than it.
constexpr int64_t kLeastReported = 4096;

Argument argument(int id, Place place, const dnnl::memory::desc& desc) {
  return {id, place, desc};
}

}  // namespace

Plan Lowering::run() {
  place_inputs_and_constants();
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (node_done_[i]) continue;
    lower(static_cast<int>(i));
    if (options_.packs && options_.packs()) report_packed(static_cast<int>(i));
  }
  place_outputs();
  place_states();
  drop_unused_constants();
  return std::move(plan_);
}

void Lowering::lower(int index) {
  const Node& node = graph_.nodes[static_cast<size_t>(index)];
  mark_done(index);
  if (makes_nothing(node)) return;
  const size_t begin = plan_.steps.size();
  node_ = index;
  choice_ = std::make_shared<Choice>();
  find_handler(node.op).lower(*this, index);
  const bool has_choice = !choice_->implementation.empty();
  for (size_t i = begin; i < plan_.steps.size(); ++i) {
    plan_.steps[i].op = node.op;
    if (has_choice) plan_.steps[i].choice = choice_;
  }
}

Lowering::Mark Lowering::begin_trial() {
  return {*this, *choice_, std::exchange(options_.chooser, nullptr)};
}

void Lowering::end_trial(Mark mark) {
  static_cast<LoweringProgress&>(*this) = std::move(mark.progress);
  *choice_ = std::move(mark.choice);
  options_.chooser = mark.chooser;
}

Plan Lowering::steps_since(const Mark& mark) const {
  Plan part;
  part.buffers = plan_.buffers;
  for (Buffer& buffer : part.buffers)
    if (buffer.kind != Buffer::Kind::kConstant) buffer.kind = Buffer::Kind::kArena;
  part.steps.assign(plan_.steps.begin() + static_cast<ptrdiff_t>(mark.progress.plan_.steps.size()),
                    plan_.steps.end());
  part.is_read = buffers_in_use(part);
  return part;
}

void Lowering::report_packed(int node) {
  for (int input : graph_.nodes[static_cast<size_t>(node)].inputs) {
    if (buffer_of(input) == kNone) continue;
    const Buffer& from = buffer(view(input));
    const bool is_imported = from.kind == Buffer::Kind::kConstant && from.keeper == nullptr;
    if (!is_imported || from.data == nullptr || is_read_after(view(input), node)) continue;
    const void* data = from.data;
    if (from.bytes < kLeastReported || is_needed_after(data, node)) continue;
    options_.has_packed(data);
    for (Buffer& one : plan_.buffers)
      if (one.data == data) one.data = nullptr;
  }
}

// Several values, as those of samples that are computed by themselves, may have one constant.
bool Lowering::is_needed_after(const void* data, int node) const {
  for (size_t i = 0; i < graph_.values.size(); ++i)
    if (graph_.values[i].data == data && is_read_after(view(static_cast<int>(i)), node))
      return true;
  auto is_there = [&](const Place& place) {
    return place.buffer != kNone && plan_.buffers[place.buffer].data == data;
  };
  for (const Step& step : plan_.steps) {
    if (std::ranges::any_of(step.places, is_there)) return true;
    for (const Argument& a : step.arguments)
      if (is_there(a.place)) return true;
  }
  return false;
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
    int buffer = plan_.add_buffer({.kind = Buffer::Kind::kConstant,
                                   .bytes = value.bytes(),
                                   .data = value.data,
                                   .keeper = value.keeper});
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

View Lowering::make(int value, ElementType type, const Dims& strides, kernels::Quant quant) {
  const Dims& dims = graph_.values[value].dims;
  View made{.type = type, .dims = dims, .strides = strides, .quant = quant};
  made.buffer = plan_.add_buffer({.bytes = made.bytes()});
  set_view(value, made);
  return made;
}

View Lowering::read(int value, ElementType type, const Dims& strides) {
  ValueViews& state = states_[value];
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
  // Quantized values of one type move as they are; a change of type keeps what they mean.
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
  if (is_real_type(found.type)) return found;
  return read(value, real_type(), dense_strides_like(found.dims, found.strides));
}

bool Lowering::dies_with(const View& dying, int node) const {
  return plan_.buffers[dying.buffer].kind == Buffer::Kind::kArena &&
         !invariants_.is_kept(dying.buffer) && !is_read_after(dying, node);
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

void Lowering::add_primitive_step(Step step,
                                  const dnnl::memory::desc& scratchpad,
                                  std::vector<Argument> arguments) {
  for (const Argument& a : arguments)
    step.bytes += static_cast<double>(a.desc.get_size());
  int64_t scratch_bytes = static_cast<int64_t>(scratchpad.get_size());
  if (scratch_bytes > 0) {
    arguments.push_back(argument(DNNL_ARG_SCRATCHPAD, {scratch(scratch_bytes), 0}, scratchpad));
  }
  step.arguments = std::move(arguments);
  add_step(std::move(step));
}

static void add_described(Lowering& lowering,
                          std::string name,
                          const dnnl::reorder::primitive_desc& pd,
                          Place from,
                          Place to) {
  lowering.add_primitive<dnnl::reorder>(
      std::move(name), pd, {{DNNL_ARG_FROM, from, pd.src_desc()}, {DNNL_ARG_TO, to, pd.dst_desc()}},
      0);
}

void Lowering::add_reorder(std::string name,
                           Place from,
                           const dnnl::memory::desc& src,
                           Place to,
                           const dnnl::memory::desc& dst) {
  add_described(*this, std::move(name), {engine(), src, engine(), dst, new_attr()}, from, to);
}

// By oneDNN's code for any layouts, which moves one element after the other.
static bool is_plain_reorder(const dnnl::reorder::primitive_desc& pd) {
  const std::string_view kernel = pd.impl_info_str();
  return kernel.starts_with("simple") || kernel.starts_with("ref");
}

void Lowering::add_copy(const std::string& name, const View& from, const View& to) {
  ++plan_.n_reorders;
  bool known = dnnl_type(from.type) != dnnl::memory::data_type::undef &&
               dnnl_type(to.type) != dnnl::memory::data_type::undef;
  bool moves_only = !from.is_quantized() && !to.is_quantized();
  bool repeats = false;
  for (size_t i = 0; i < from.dims.size(); ++i)
    repeats |= from.dims[i] != 1 && from.strides[i] == 0;
  // What a primitive costs to begin would copy so much.
  constexpr int64_t kSmallBytes = int64_t{4} << 10;
  const bool may_copy = from.type == to.type && moves_only;
  if (may_copy && (!known || repeats || from.count() == 0 || interleaves(from) ||
                   is_transposed(from, to) || to.bytes() <= kSmallBytes)) {
    add_step(strided_copy(name, from, to));
    return;
  }
  if (known && moves_only && !repeats && from.count() > 0) {
    const dnnl::reorder::primitive_desc pd(engine(), descriptor(from), engine(), descriptor(to),
                                           new_attr());
    if (may_copy && is_plain_reorder(pd)) return add_step(strided_copy(name, from, to));
    return add_described(*this, name, pd, place_of(from), place_of(to));
  }
  if (from.channels != nullptr)
    throw CompileError(name + ": per-channel data that is not constant");
  if (from.type != to.type && kernels::element_bytes(from.type) == 1 && is_transposed(from, to)) {
    View reordered = from;  // a byte is cheaper to move than what it becomes
    reordered.strides = dense_strides_like(to.dims, to.strides);
    reordered.offset = 0;
    reordered.buffer = scratch(reordered.bytes());
    add_step(strided_copy(name, from, reordered));
    return add_copy(name, reordered, to);
  }
  const tn_expr_node same{TN_EXPR_INPUT, 0, 0, 0, 0};
  const uint32_t result = 0;
  const kernels::PointwiseEdge src{from.type, from.quant, from.strides};
  const kernels::PointwiseEdge dst{to.type, to.quant, to.strides};
  auto plan = std::make_shared<kernels::PointwisePlan>();
  std::string why = plan->make({.nodes = {&same, 1},
                                .results = {&result, 1},
                                .dims = to.dims,
                                .inputs = {&src, 1},
                                .outputs = {&dst, 1},
                                .level = best_level(),
                                .code_store = options_.code_store});
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

// SPDX-License-Identifier: Apache-2.0
#include "pointwise_group.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cpu.hpp"
#include "epilogue.hpp"
#include "kernels/pointwise.h"
#include "kernels/quantize.h"
#include "state_layout.hpp"

namespace tenon::onednn {
namespace {

constexpr int kReach = 64;         // nodes looked at behind the first
constexpr int kSharingReach = 24;  // of them, for what only reads the same operand: see grow
constexpr size_t kMostNodes = 48;  // of the program before another node is added

// Views of what is at hand are made for a group.
constexpr std::string_view kViews[] = {"Slice", "Transpose", "Squeeze", "Unsqueeze"};

bool is_real_or_bool(ElementType type) {
  return type <= ElementType::kF16 || type == ElementType::kBool;
}
// Exact in f32, and stored by the kernel as Cast does.
bool is_short(ElementType type) {
  return is_real_or_bool(type) || type == ElementType::kU8 || type == ElementType::kS8;
}

// Booleans are 0 and 1 in f32 as well.
bool computes_bits(const Node& node) {
  for (const tn_expr_node& e : node.expr) {
    bool is_fine = e.op == TN_EXPR_INPUT || e.op == TN_EXPR_CONST || e.op == TN_EXPR_NOT ||
                   e.op == TN_EXPR_SELECT || (e.op >= TN_EXPR_EQ && e.op <= TN_EXPR_XOR);
    if (!is_fine) return false;
  }
  return node.bits == 1;
}

bool is_byte(ElementType type) {
  return type == ElementType::kU8 || type == ElementType::kS8;
}

// Whether all that is computed is one 8-bit number of another in the same place.
bool maps_bytes(const kernels::PointwiseSpec& spec) {
  return spec.inputs.size() == 1 && spec.outputs.size() == 1 && is_byte(spec.inputs[0].type) &&
         is_byte(spec.outputs[0].type) &&
         same_strides(Dims(spec.dims.begin(), spec.dims.end()), spec.inputs[0].strides,
                      spec.outputs[0].strides);
}

// The spec as a table of what each of the 256 numbers becomes.
void set_table(Step& step, const kernels::PointwiseSpec& spec) {
  auto table = std::make_shared<std::array<uint8_t, 256>>();
  const kernels::PointwiseEdge& from = spec.inputs[0];
  const kernels::PointwiseEdge& to = spec.outputs[0];
  const std::string why =
      kernels::make_table(spec.nodes, spec.results[0], {nullptr, from.type, from.quant},
                          {nullptr, to.type, to.quant}, table->data());
  if (!why.empty()) throw CompileError(step.name + ": " + why);
  const int64_t n = element_count(Dims(spec.dims.begin(), spec.dims.end()));
  step.kernel = "tenon:map_bytes";
  step.kernel_function = [table, n](const kernels::Context& context,
                                    void* const* pointers) -> const char* {
    kernels::map_bytes(context, table->data(), static_cast<const uint8_t*>(pointers[0]), n,
                       static_cast<uint8_t*>(pointers[1]));
    return nullptr;
  };
}

void set_pointwise(Step& step, const kernels::PointwiseSpec& spec) {
  auto plan = std::make_shared<kernels::PointwisePlan>();
  const std::string why = plan->make(spec);
  if (!why.empty()) throw CompileError(step.name + ": " + why);
  step.kernel = "tenon:pointwise (" + plan->how() + ")";
  step.pointwise = plan;
  step.n_sources = spec.inputs.size();
  step.kernel_function = pointwise_function(plan, spec.inputs.size(), spec.outputs.size());
}

}  // namespace

uint32_t append_pointwise(backend::ProgramBuilder& program,
                          const Graph& graph,
                          const Node& node,
                          const std::function<uint32_t(uint32_t)>& operand) {
  if (node.op != "Cast") return program.append(node.expr, operand);
  const bool to_bool = graph.values[node.outputs[0]].type == ElementType::kBool;
  return to_bool ? program.emit(TN_EXPR_NE, operand(0), program.number(0)) : operand(0);
}

bool is_pointwise(const Graph& graph, const Node& node) {
  if (node.op == "Cast") {
    ElementType from = graph.values[node.inputs[0]].type;
    ElementType to = graph.values[node.outputs[0]].type;
    // f32 would lose digits of wide integers, and reach further than narrow ones.
    if (is_real_or_bool(to)) return from <= ElementType::kBool;
    return is_short(from) && (to == ElementType::kI32 || to == from);
  }
  if (node.expr.empty() || (node.domain != TN_EXPR_DOMAIN_FLOAT && !computes_bits(node))) {
    return false;
  }
  for (const std::vector<int>* list : {&node.inputs, &node.outputs}) {
    for (int value : *list) {
      if (value != kNone && !is_real_or_bool(graph.values[value].type)) return false;
    }
  }
  return true;
}

KernelFunction pointwise_function(std::shared_ptr<const kernels::PointwisePlan> plan,
                                  size_t n_sources,
                                  size_t n_targets) {
  return [plan = std::move(plan), n_sources, n_targets](const kernels::Context& context,
                                                        void* const* pointers) -> const char* {
    plan->run(context, std::span<const void* const>(pointers, n_sources),
              std::span<void* const>(pointers + n_sources, n_targets));
    return nullptr;
  };
}

PointwiseGroup::PointwiseGroup(Lowering& lowering, int first)
    : lowering_(lowering),
      graph_(lowering.graph()),
      first_(first),
      dims_(graph_.values[graph_.nodes[first].outputs[0]].dims) {
  if (!add(first)) throw CompileError(graph_.nodes[first].name + ": operands are not at hand");
  grow(first);
  collect_results();
}

uint32_t PointwiseGroup::operand(int value) {
  auto found = program_of_.find(value);
  if (found != program_of_.end()) return found->second;
  if (const std::optional<double> number = constant_number(graph_.values[value]))
    return program_of_[value] = program_.number(*number);
  inputs_.push_back(value);
  uint32_t index = static_cast<uint32_t>(inputs_.size()) - 1;
  return program_of_[value] = program_.input(index);
}

bool PointwiseGroup::is_inside(int node) const {
  return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
}

bool PointwiseGroup::add(int index) {
  const Node& node = graph_.nodes[index];
  if (node.op == "QuantizeLinear") return add_quantize(index);
  if (node.op == "DequantizeLinear") return add_dequantize(index);
  if (!is_pointwise(graph_, node)) return false;
  if (inputs_.size() + node.inputs.size() > kMostPointwiseInputs) return false;
  for (int input : node.inputs) {
    if (input != kNone && quant_of_.count(input) > 0) return false;  // reads the integers
    if (input == kNone) continue;
    if (program_of_.count(input) > 0) {
      int producer = graph_.values[input].producer;
      ElementType type = graph_.values[input].type;
      // What the group makes is rounded to its type only when it is stored.
      bool is_rounded = type == ElementType::kF32 || type == ElementType::kBool;
      if (producer != kNone && is_inside(producer) && !is_rounded) return false;
      continue;
    }
    if (add_producer(input)) continue;
    if (!ensure_available(lowering_, input, kViews)) return false;
  }
  if (inputs_.size() + node.inputs.size() > kMostPointwiseInputs) return false;
  program_of_[node.outputs[0]] =
      append_pointwise(program_, graph_, node, [&](uint32_t i) { return operand(node.inputs[i]); });
  nodes_.push_back(index);
  return true;
}

// What a node of the group needs beside the group's own results: so both sides of a sum are in it.
bool PointwiseGroup::add_producer(int value) {
  int producer = graph_.values[value].producer;
  if (producer == kNone || lowering_.is_available(value) || lowering_.is_done(producer)) {
    return false;
  }
  bool is_rounded = graph_.values[value].type == ElementType::kF32;
  return is_rounded && graph_.values[value].dims == dims_ && program_.size() < kMostNodes &&
         is_pointwise(graph_, graph_.nodes[producer]) && add(producer);
}

bool PointwiseGroup::add_quantize(int index) {
  const Node& node = graph_.nodes[index];
  std::optional<kernels::Quant> quant = tensor_quant(lowering_, node);
  if (!quant) return false;
  int output = node.outputs[0];
  ElementType type = graph_.values[output].type;
  if (type != ElementType::kU8 && type != ElementType::kS8) return false;
  if (program_of_.count(node.inputs[0]) == 0 && !ensure_available(lowering_, node.inputs[0])) {
    return false;
  }
  program_of_[output] = operand(node.inputs[0]);
  quant_of_[output] = *quant;
  nodes_.push_back(index);
  return true;
}

// Behind a QuantizeLinear of this group: rounding without storing.
bool PointwiseGroup::add_dequantize(int index) {
  const Node& node = graph_.nodes[index];
  auto found = quant_of_.find(node.inputs[0]);
  std::optional<kernels::Quant> quant = tensor_quant(lowering_, node);
  if (found == quant_of_.end() || !quant) return false;
  const kernels::Quant& stored = found->second;
  if (quant->scale != stored.scale || quant->zero_point != stored.zero_point) return false;
  bool is_signed = graph_.values[node.inputs[0]].type == ElementType::kS8;
  double low = (is_signed ? -128 : 0) - stored.zero_point;
  double high = (is_signed ? 127 : 255) - stored.zero_point;
  uint32_t scale = program_.number(double{stored.scale});
  program_of_[node.outputs[0]] =
      program_.fake_quantized(program_of_[node.inputs[0]], scale, low, high);
  nodes_.push_back(index);
  return true;
}

// What reads a full-size operand of the group is worth running beside it: the operand is read once.
bool PointwiseGroup::shares_input(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
    return input != kNone && graph_.values[input].dims == dims_ && element_count(dims_) > 1 &&
           std::find(inputs_.begin(), inputs_.end(), input) != inputs_.end();
  });
}

void PointwiseGroup::grow(int first) {
  int end = std::min<int>(static_cast<int>(graph_.nodes.size()), first + kReach);
  for (int i = first + 1; i < end && program_.size() < kMostNodes; ++i) {
    if (lowering_.is_done(i)) continue;
    const Node& node = graph_.nodes[i];
    if (node.outputs.empty() || graph_.values[node.outputs[0]].dims != dims_) continue;
    bool reads_group = false;
    for (int input : node.inputs) {
      int producer = input == kNone ? kNone : graph_.values[input].producer;
      reads_group |= producer != kNone && is_inside(producer);
    }
    // The results of what is only near wait in memory until they are read.
    bool is_near = i - first < kSharingReach;
    bool is_inside_already = is_inside(i);
    if (!is_inside_already && (reads_group || (is_near && shares_input(node)))) add(i);
  }
  // A DequantizeLinear whose result leaves the group is a view of the stored integers instead.
  std::erase_if(nodes_, [&](int node) {
    if (graph_.nodes[node].op != "DequantizeLinear") return false;
    const Value& value = graph_.values[graph_.nodes[node].outputs[0]];
    bool stays = value.n_outputs == 0 && !value.users.empty();
    for (int user : value.users)
      stays &= is_inside(user);
    return !stays;
  });
}

void PointwiseGroup::collect_results() {
  for (int index : nodes_) {
    int value = graph_.nodes[index].outputs[0];
    const Value& v = graph_.values[value];
    bool leaves = v.n_outputs > 0 || v.users.empty();
    for (int user : v.users)
      leaves |= !is_inside(user);
    if (!leaves) continue;
    auto quant = quant_of_.find(value);
    results_.push_back(
        {value, program_of_[value], quant == quant_of_.end() ? kernels::Quant{} : quant->second});
  }
}

// The layout of the widest input: what is indifferent keeps the layout it is given.
Dims PointwiseGroup::result_strides() const {
  for (const Result& result : results_) {
    if (lowering_.is_state_result(result.value)) return kept_strides(graph_, result.value);
  }
  for (int input : inputs_) {
    const View& view = lowering_.view(input);
    bool varies = !lowering_.is_constant_view(view);
    if (varies && view.dims == dims_ && view.count() > 1) {
      return dense_strides_like(dims_, view.strides);
    }
  }
  return row_major_strides(dims_);
}

// Whether the group reads what lies there element by element, as it writes results, if at all.
bool PointwiseGroup::reads_in_step(const View& state) const {
  return std::all_of(inputs_.begin(), inputs_.end(), [&](int input) {
    const View& view = lowering_.view(input);
    return view.buffer != state.buffer ||
           (view.offset == 0 && view.type == state.type && view.dims == dims_ &&
            same_strides(dims_, view.strides, state.strides));
  });
}

std::vector<Place> PointwiseGroup::places_but(size_t excepted) const {
  std::vector<Place> places;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (i != excepted) places.push_back(place_of(lowering_.view(inputs_[i])));
  return places;
}

View PointwiseGroup::place_result(const Result& result,
                                  const Dims& strides,
                                  std::vector<bool>& reused) {
  const Value& value = graph_.values[result.value];
  bool is_real = value.type == ElementType::kF32 && value.n_outputs == 0;
  View view{.type = is_real ? lowering_.stored_type(result.value) : value.type,
            .dims = dims_,
            .strides = strides};
  if (const View* state = lowering_.replaced_state(result.value, first_);
      state != nullptr && reads_in_step(*state)) {
    lowering_.plan().first_commit =
        std::min(lowering_.plan().first_commit, lowering_.plan().steps.size());
    view.buffer = state->buffer;
    return view;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const View& input = lowering_.view(inputs_[i]);
    bool fits = !reused[i] && input.dims == dims_ && same_strides(dims_, input.strides, strides);
    if (!fits || !lowering_.may_overwrite(input, view, first_, places_but(i))) continue;
    reused[i] = true;
    view.buffer = input.buffer;
    return view;
  }
  view.buffer = lowering_.scratch(view.bytes());
  return view;
}

void PointwiseGroup::lower() {
  for (int node : nodes_)
    lowering_.mark_done(node);
  Dims strides = result_strides();
  std::string name;
  for (int node : nodes_)
    name += (name.empty() ? "" : "+") + graph_.nodes[node].name;
  Step step{.name = name, .always_succeeds = true};
  std::vector<kernels::PointwiseEdge> sources;
  for (int input : inputs_) {
    View view = lowering_.view(input);
    if (view.channels != nullptr) view = lowering_.read_row_major(input, ElementType::kF32);
    sources.push_back({view.type, view.quant, broadcast_strides(view, dims_)});
    step.places.push_back(place_of(view));
    step.bytes += static_cast<double>(view.bytes());
  }
  std::vector<bool> reused(inputs_.size(), false);
  std::vector<kernels::PointwiseEdge> targets;
  std::vector<uint32_t> program_results;
  std::vector<View> views;
  for (const Result& result : results_) {
    views.push_back(place_result(result, strides, reused));
    targets.push_back({views.back().type, result.quant, strides});
    program_results.push_back(result.program_node);
    step.places.push_back(place_of(views.back()));
    step.bytes += static_cast<double>(views.back().bytes());
  }
  for (size_t i = 0; i < results_.size(); ++i)
    lowering_.set_view(results_[i].value, views[i]);
  const kernels::PointwiseSpec spec{.nodes = program_.nodes(),
                                    .results = program_results,
                                    .dims = dims_,
                                    .inputs = sources,
                                    .outputs = targets,
                                    .level = best_level(),
                                    .code_store = lowering_.options().code_store};
  maps_bytes(spec) ? set_table(step, spec) : set_pointwise(step, spec);
  step.flops = static_cast<double>(program_.size()) * static_cast<double>(element_count(dims_));
  lowering_.add_step(std::move(step));
}

}  // namespace tenon::onednn

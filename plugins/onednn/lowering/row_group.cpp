// SPDX-License-Identifier: Apache-2.0
#include "row_group.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "epilogue.hpp"
#include "graph/reductions.hpp"
#include "pointwise_group.hpp"
#include "row_program.hpp"
#include "row_shape.hpp"

namespace tenon::onednn {
namespace {

constexpr int kReach = 24;  // nodes looked at behind the first
constexpr size_t kMostMembers = 24;
constexpr int64_t kLeastElements = 4096;  // of what is only reduced: fewer are in the first cache

class RowGroup {
 public:
  RowGroup(Lowering& lowering, int first) : lowering_(lowering), graph_(lowering.graph()) {
    const Node& node = graph_.nodes[first];
    const bool reduces = reduced_last_axes(graph_, node) > 0;
    dims_ = graph_.values[reduces ? node.inputs[0] : node.outputs[0]].dims;
    const int end = std::min<int>(static_cast<int>(graph_.nodes.size()), first + kReach);
    for (int i = first; i < end && !has_chain(); ++i) {
      const size_t before = n_reduced_;
      n_reduced_ = axes_that_end_rows(graph_.nodes[i]);
      if (n_reduced_ == 0 || n_reduced_ == before) continue;
      members_.clear();
      part_of_value_.clear();
      if (shape_.cut(dims_, n_reduced_)) collect(first);
    }
  }

  // Whether rows are read again behind their reduction, or are never stored.
  bool has_chain() const {
    const bool is_chain = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      const int operand = graph_.nodes[member.node].inputs[0];
      return member.part == Part::kAfter ||
             (member.part == Part::kReduction && part_of_value_.count(operand) > 0);
    });
    const bool is_worth_it = has(Part::kAfter) || element_count(dims_) >= kLeastElements;
    return is_chain && is_worth_it && has(Part::kReduction) && has_room();
  }

  void lower();

 private:
  // In the order in which they run.
  enum class Part : uint8_t { kBefore, kReduction, kOfRows, kAfter };
  struct Member {
    int node;
    Part part;
  };

  bool has(Part part) const {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Member& member) { return member.part == part; });
  }

  // Of a reduction of values like those of the group.
  size_t axes_that_end_rows(const Node& node) const {
    const bool fits = !node.inputs.empty() && node.inputs[0] != kNone &&
                      graph_.values[node.inputs[0]].dims == dims_;
    return fits ? reduced_last_axes(graph_, node) : 0;
  }

  // What a program of rows can hold.
  bool has_room() const {
    size_t n_slots = 0, n_results = 0;
    std::set<int> others;
    for (const Member& member : members_) {
      const Node& node = graph_.nodes[member.node];
      const bool is_written =
          member.part == Part::kReduction || is_result(node.outputs[0], member.part);
      n_results += is_written ? 1 : 0;
      n_slots += is_written && member.part == Part::kBefore && !leaves(node.outputs[0]) ? 1 : 0;
      for (int input : node.inputs)
        if (part_of_value_.count(input) == 0) others.insert(input);
    }
    return static_cast<int64_t>(n_slots) * shape_.columns <= RowProgram::kSlotFloats &&
           others.size() + 2 * n_results <= RowProgram::kMostEdges;
  }

  void collect(int first) {
    const int end = std::min<int>(static_cast<int>(graph_.nodes.size()), first + kReach);
    for (int i = first; i < end && members_.size() < kMostMembers; ++i) {
      if (i != first && (lowering_.is_done(i) || !reads_group(i))) continue;
      if (std::optional<Part> part = part_of(graph_.nodes[i])) {
        members_.push_back({i, *part});
        part_of_value_[graph_.nodes[i].outputs[0]] = *part;
      } else if (i == first) {
        return;
      }
    }
  }

  bool reads_group(int index) const {
    const std::vector<int>& inputs = graph_.nodes[index].inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int input) { return part_of_value_.count(input) > 0; });
  }

  std::optional<Part> part_of(const Node& node) {
    if (node.outputs.size() != 1 || node.inputs.empty()) return std::nullopt;
    if (kernel_reduction(node) && reduced_last_axes(graph_, node) == n_reduced_)
      return reduces_rows(node) ? std::optional(Part::kReduction) : std::nullopt;
    if (!is_pointwise(graph_, node)) return std::nullopt;
    if (graph_.values[node.outputs[0]].type != ElementType::kF32) return std::nullopt;
    const Dims& made = graph_.values[node.outputs[0]].dims;
    Part part = made == dims_ ? Part::kBefore : Part::kOfRows;
    if (part == Part::kOfRows && made != shape_.row_dims) return std::nullopt;
    for (int input : node.inputs) {
      auto inside = input == kNone ? part_of_value_.end() : part_of_value_.find(input);
      if (inside == part_of_value_.end()) {
        if (input == kNone || !is_readable(input)) return std::nullopt;
        if (part == Part::kOfRows && graph_.values[input].dims == dims_) return std::nullopt;
      } else {
        if (!broadcasts_as_row(inside->second, input)) return std::nullopt;
        if (part == Part::kBefore && inside->second != Part::kBefore) part = Part::kAfter;
      }
    }
    const bool reads_again = part == Part::kOfRows || part == Part::kAfter;
    return reads_again && shape_.is_only_reduced ? std::nullopt : std::optional(part);
  }
  // A reduction that dropped its axes has no number for each row where others read it.
  bool broadcasts_as_row(Part made_in, int value) const {
    return made_in != Part::kReduction || graph_.values[value].dims == shape_.row_dims;
  }
  bool reduces_rows(const Node& node) {
    const int operand = node.inputs[0];
    if (graph_.values[operand].dims != dims_) return false;
    auto inside = part_of_value_.find(operand);
    return inside == part_of_value_.end() ? is_readable(operand) : inside->second == Part::kBefore;
  }

  // What is not of the group: in memory, all of it in row-major order, one for a row, or one row.
  bool is_readable(int value) {
    const ElementType type = graph_.values[value].type;
    if (type != ElementType::kF32 && type != ElementType::kBool) return false;
    if (!ensure_available(lowering_, value)) return false;
    const View& view = lowering_.view(value);
    return !view.is_quantized() && view.channels == nullptr && shape_.edge_of(view).has_value();
  }

  bool leaves(int value) const {
    const Value& v = graph_.values[value];
    return v.n_outputs > 0 || std::any_of(v.users.begin(), v.users.end(), [&](int user) {
             return std::none_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.node == user; });
           });
  }

  bool is_read_in(int value, Part part) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      const std::vector<int>& inputs = graph_.nodes[member.node].inputs;
      return member.part == part && std::count(inputs.begin(), inputs.end(), value) > 0;
    });
  }

  RowEdge place(const View& view, Step& step);
  RowEdge source(int value, Step& step);
  RowEdge target(int value, Part part, Step& step);
  static RowEdge number_of_each_row(const View& view, Step& step);
  bool is_result(int value, Part part) const;
  View memory_for(int value, Part part);
  RowStage pointwise_stage(Part part, Step& step);
  void add_reduction(const Node& node, Step& step, RowProgram::Stages* made);
  RowProgram::Stages stages(Step& step);

  Lowering& lowering_;
  const Graph& graph_;
  Dims dims_;
  size_t n_reduced_ = 0;  // of the axes, the last ones
  RowShape shape_;
  Dims outer_ = {};  // axes of the rows, where an operand is broadcast along them
  std::vector<Member> members_;
  std::map<int, Part> part_of_value_;
  std::map<int, RowEdge> edges_;  // of values that have their place
  int64_t n_slots_ = 0;
};

RowEdge RowGroup::place(const View& view, Step& step) {
  RowEdge edge = *shape_.edge_of(view);
  edge.place = static_cast<int>(step.places.size());
  step.places.push_back(place_of(view));
  step.bytes += static_cast<double>(view.bytes());
  if (!edge.outer.empty()) outer_ = shape_.outer();
  return edge;
}

RowEdge RowGroup::source(int value, Step& step) {
  auto found = edges_.find(value);
  if (found != edges_.end()) return found->second;
  return edges_[value] = place(lowering_.view(value), step);
}

// A result behind the reductions may lie where an operand that nothing else needs lay.
View RowGroup::memory_for(int value, Part part) {
  const bool is_of_rows = graph_.values[value].dims != dims_;
  View view{.type = is_of_rows ? ElementType::kF32 : lowering_.stored_type(value),
            .dims = graph_.values[value].dims,
            .strides = row_major_strides(graph_.values[value].dims)};
  for (auto& [input, edge] : edges_) {
    if (part != Part::kAfter || edge.place < 0 || part_of_value_.count(input) > 0) continue;
    const View& old = lowering_.view(input);
    std::vector<Place> others;  // results that have their memory among them
    for (const auto& [other, its] : edges_)
      if (other != input && its.place >= 0) others.push_back(place_of(lowering_.view(other)));
    const bool fits =
        old.dims == view.dims && lowering_.may_overwrite(old, view, members_.front().node, others);
    if (!fits) continue;
    view.buffer = old.buffer;
    return view;
  }
  view.buffer = lowering_.scratch(view.bytes());
  return view;
}

RowEdge RowGroup::target(int value, Part part, Step& step) {
  const bool stays = part == Part::kBefore && !leaves(value);
  if (stays) {
    return edges_[value] = {.place = static_cast<int>(-1 - n_slots_++),
                            .row_elements = shape_.columns};
  }
  const View view = memory_for(value, part);
  lowering_.set_view(value, view);
  if (part != Part::kReduction) return edges_[value] = place(view, step);
  return edges_[value] = number_of_each_row(view, step);
}

RowEdge RowGroup::number_of_each_row(const View& view, Step& step) {
  const RowEdge edge{.place = static_cast<int>(step.places.size()),
                     .type = view.type,
                     .row_elements = 1,
                     .step = 0};
  step.places.push_back(place_of(view));
  step.bytes += static_cast<double>(view.bytes());
  return edge;
}

// What a stage has to write: what leaves the group, or is read by another stage.
bool RowGroup::is_result(int value, Part part) const {
  if (leaves(value)) return true;
  if (part == Part::kOfRows) return is_read_in(value, Part::kAfter);
  return part == Part::kBefore &&
         (is_read_in(value, Part::kReduction) || is_read_in(value, Part::kAfter));
}

RowStage RowGroup::pointwise_stage(Part part, Step& step) {
  RowStage stage{.columns = part == Part::kOfRows ? 1 : shape_.columns};
  std::map<int, uint32_t> program_of;
  backend::ProgramBuilder program(true);
  auto operand = [&](int value) {
    auto found = program_of.find(value);
    if (found != program_of.end()) return found->second;
    if (const std::optional<double> number = constant_number(graph_.values[value]))
      return program_of[value] = program.number(*number);
    stage.sources.push_back(source(value, step));
    const uint32_t index = static_cast<uint32_t>(stage.sources.size()) - 1;
    return program_of[value] = program.input(index);
  };
  for (const Member& member : members_) {
    if (member.part != part) continue;
    const Node& node = graph_.nodes[member.node];
    program_of[node.outputs[0]] = append_pointwise(
        program, graph_, node, [&](uint32_t i) { return operand(node.inputs[i]); });
  }
  stage.program = program.nodes();
  for (const Member& member : members_) {
    const int value = graph_.nodes[member.node].outputs[0];
    if (member.part != part || !is_result(value, part)) continue;
    stage.results.push_back(program_of[value]);
    stage.targets.push_back(target(value, part, step));
  }
  return stage;
}

// Of parts of rows, the numbers of a row's parts are reduced in the end.
void RowGroup::add_reduction(const Node& node, Step& step, RowProgram::Stages* made) {
  RowStage stage{.reduction = *kernel_reduction(node), .columns = shape_.columns};
  stage.sources.push_back(source(node.inputs[0], step));
  const RowEdge result = target(node.outputs[0], Part::kReduction, step);
  stage.targets.push_back(result);
  if (shape_.parts > 1) {
    View parts{.type = ElementType::kF32, .dims = {shape_.rows}, .strides = {1}};
    parts.buffer = lowering_.scratch(parts.bytes());
    stage.targets[0] = number_of_each_row(parts, step);
    made->of_parts.push_back({.kind = stage.reduction,
                              .from = stage.targets[0].place,
                              .to = result.place,
                              .rows = shape_.rows / shape_.parts,
                              .parts = shape_.parts});
  }
  made->in_blocks.push_back(std::move(stage));
}

RowProgram::Stages RowGroup::stages(Step& step) {
  RowProgram::Stages made;
  auto add = [&](Part part) {
    RowStage stage = pointwise_stage(part, step);
    if (!stage.results.empty()) made.in_blocks.push_back(std::move(stage));
  };
  add(Part::kBefore);
  for (const Member& member : members_)
    if (member.part == Part::kReduction) add_reduction(graph_.nodes[member.node], step, &made);
  add(Part::kOfRows);
  add(Part::kAfter);
  return made;
}

void RowGroup::lower() {
  Step step{.always_succeeds = true};
  for (const Member& member : members_) {
    lowering_.mark_done(member.node);
    step.name += (step.name.empty() ? "" : "+") + graph_.nodes[member.node].name;
  }
  RowProgram::Stages made = stages(step);
  for (const RowStage& stage : made.in_blocks) {
    const size_t work = std::max<size_t>(stage.program.size(), 1);
    step.flops += static_cast<double>(work) * static_cast<double>(shape_.rows * stage.columns);
  }
  auto program = std::make_shared<RowProgram>();
  std::string why = program->make(std::move(made), {shape_.rows, shape_.columns, outer_}, n_slots_,
                                  lowering_.options().code_store);
  if (!why.empty()) throw CompileError(step.name + ": " + why);
  step.kernel = "tenon:rows (" + program->how() + ")";
  step.kernel_function = [program](const kernels::Context& context,
                                   void* const* pointers) -> const char* {
    program->run(context, pointers);
    return nullptr;
  };
  lowering_.add_step(std::move(step));
}

}  // namespace

std::function<void()> find_row_group(Lowering& lowering, int first) {
  auto group = std::make_shared<RowGroup>(lowering, first);
  if (!group->has_chain()) return {};
  return [group] { group->lower(); };
}

}  // namespace tenon::onednn

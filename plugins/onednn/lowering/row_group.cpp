// SPDX-License-Identifier: Apache-2.0
#include "row_group.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "epilogue.hpp"
#include "graph/reductions.hpp"
#include "pointwise_group.hpp"
#include "row_program.hpp"

namespace tenon::onednn {
namespace {

constexpr int kReach = 24;  // nodes looked at behind the first
constexpr int64_t kShortestRow = 4;
constexpr int64_t kLongestRow = 4096;  // several of them fit the slots
constexpr int64_t kFewestRows = 16;
constexpr size_t kMostMembers = 24;

// Over the last axis, which stays with extent 1. Norms and sums of squares run alone.
std::optional<kernels::Reduction> reduction_of(const Graph& graph, const Node& node) {
  const std::optional<kernels::Reduction> kind = kernel_reduction(node);
  const bool is_norm = kind == kernels::Reduction::kL1 || kind == kernels::Reduction::kL2 ||
                       kind == kernels::Reduction::kSumSquare;
  if (!kind || is_norm || node.integer("keepdims", 1) == 0) return std::nullopt;
  if (node.input(1) != kNone) {
    const Value& axes = graph.values[node.inputs[1]];
    if (axes.data == nullptr || axes.type != ElementType::kI64) return std::nullopt;
  }
  const int64_t last = static_cast<int64_t>(graph.values[node.inputs[0]].dims.size()) - 1;
  return reduced_axes(graph, node) == Dims{last} ? kind : std::nullopt;
}

class RowGroup {
 public:
  RowGroup(Lowering& lowering, int first) : lowering_(lowering), graph_(lowering.graph()) {
    const Node& node = graph_.nodes[first];
    const bool reduces = reduction_of(graph_, node).has_value();
    dims_ = graph_.values[reduces ? node.inputs[0] : node.outputs[0]].dims;
    if (dims_.size() < 2 || dims_.back() < kShortestRow || dims_.back() > kLongestRow) return;
    columns_ = dims_.back();
    rows_ = element_count(dims_) / columns_;
    if (rows_ < kFewestRows) return;
    row_dims_ = dims_;
    row_dims_.back() = 1;
    collect(first);
  }

  bool has_chain() const {
    auto has = [&](Part part) {
      return std::any_of(members_.begin(), members_.end(),
                         [&](const Member& member) { return member.part == part; });
    };
    return has(Part::kReduction) && has(Part::kAfter);
  }

  void lower();

 private:
  // In the order in which they run.
  enum class Part : uint8_t { kBefore, kReduction, kOfRows, kAfter };
  struct Member {
    int node;
    Part part;
  };

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
    if (reduction_of(graph_, node).has_value()) {
      const int operand = node.inputs[0];
      auto inside = part_of_value_.find(operand);
      const bool fits =
          graph_.values[operand].dims == dims_ &&
          (inside == part_of_value_.end() ? is_readable(operand) : inside->second == Part::kBefore);
      return fits ? std::optional(Part::kReduction) : std::nullopt;
    }
    if (node.expr.empty() || !is_pointwise(graph_, node)) return std::nullopt;
    if (graph_.values[node.outputs[0]].type != ElementType::kF32) return std::nullopt;
    const Dims& made = graph_.values[node.outputs[0]].dims;
    Part part = made == dims_ ? Part::kBefore : Part::kOfRows;
    if (part == Part::kOfRows && made != row_dims_) return std::nullopt;
    for (int input : node.inputs) {
      auto inside = input == kNone ? part_of_value_.end() : part_of_value_.find(input);
      if (inside == part_of_value_.end()) {
        if (input == kNone || !is_readable(input)) return std::nullopt;
        if (part == Part::kOfRows && graph_.values[input].dims == dims_) return std::nullopt;
      } else if (part == Part::kBefore && inside->second != Part::kBefore) {
        part = Part::kAfter;
      }
    }
    return part;
  }

  // What is not of the group: in memory, all of it in row-major order, one for a row, or one row.
  bool is_readable(int value) {
    const ElementType type = graph_.values[value].type;
    if (type != ElementType::kF32 && type != ElementType::kBool) return false;
    if (!ensure_available(lowering_, value)) return false;
    const View& view = lowering_.view(value);
    return !view.is_quantized() && view.channels == nullptr && edge_of(view).has_value();
  }

  std::optional<RowEdge> edge_of(const View& view) const {
    RowEdge edge{.type = view.type};
    if (view.count() == 1) edge.step = 0;
    if (view.count() == 1) return edge;
    if (!is_row_major(view)) return std::nullopt;
    if (view.dims == dims_) {
      edge.row_elements = columns_;
    } else if (view.dims == row_dims_) {
      edge.row_elements = 1;
      edge.step = 0;
    } else if (view.dims.back() != columns_ || view.count() != columns_) {
      return std::nullopt;
    }
    return edge;
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
  bool is_result(int value, Part part) const;
  View memory_for(int value, Part part);
  RowStage pointwise_stage(Part part, Step& step);
  std::vector<RowStage> stages(Step& step);

  Lowering& lowering_;
  const Graph& graph_;
  Dims dims_, row_dims_;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<Member> members_;
  std::map<int, Part> part_of_value_;
  std::map<int, RowEdge> edges_;  // of values that have their place
  int64_t n_slots_ = 0;
};

RowEdge RowGroup::place(const View& view, Step& step) {
  RowEdge edge = *edge_of(view);
  edge.place = static_cast<int>(step.places.size());
  step.places.push_back(place_of(view));
  step.bytes += static_cast<double>(view.bytes());
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
    return edges_[value] = {.place = static_cast<int>(-1 - n_slots_++), .row_elements = columns_};
  }
  const View view = memory_for(value, part);
  lowering_.set_view(value, view);
  return edges_[value] = place(view, step);
}

// What a stage has to write: what leaves the group, or is read by another stage.
bool RowGroup::is_result(int value, Part part) const {
  if (leaves(value)) return true;
  if (part == Part::kOfRows) return is_read_in(value, Part::kAfter);
  return part == Part::kBefore &&
         (is_read_in(value, Part::kReduction) || is_read_in(value, Part::kAfter));
}

RowStage RowGroup::pointwise_stage(Part part, Step& step) {
  RowStage stage{.columns = part == Part::kOfRows ? 1 : columns_};
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
    program_of[node.outputs[0]] =
        program.append(node.expr, [&](uint32_t i) { return operand(node.inputs[i]); });
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

std::vector<RowStage> RowGroup::stages(Step& step) {
  std::vector<RowStage> made;
  auto add = [&](Part part) {
    RowStage stage = pointwise_stage(part, step);
    if (!stage.results.empty()) made.push_back(std::move(stage));
  };
  add(Part::kBefore);
  for (const Member& member : members_) {
    if (member.part != Part::kReduction) continue;
    const Node& node = graph_.nodes[member.node];
    RowStage stage{.reduction = *reduction_of(graph_, node), .columns = columns_};
    stage.sources.push_back(source(node.inputs[0], step));
    stage.targets.push_back(target(node.outputs[0], Part::kReduction, step));
    made.push_back(std::move(stage));
  }
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
  std::vector<RowStage> made = stages(step);
  for (const RowStage& stage : made) {
    const size_t work = std::max<size_t>(stage.program.size(), 1);
    step.flops += static_cast<double>(work) * static_cast<double>(rows_ * stage.columns);
  }
  auto program = std::make_shared<RowProgram>();
  std::string why =
      program->make(std::move(made), rows_, columns_, n_slots_, lowering_.options().code_store);
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

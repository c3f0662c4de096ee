// SPDX-License-Identifier: Apache-2.0
#include "lowering.hpp"

#include <algorithm>

#include "handlers/handlers.hpp"
#include "kernels/copy_args.h"
#include "pointwise_group.hpp"

namespace tenon::cuda {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint64_t kMostBlocks = 1u << 16;  // kernels stride over what is left

uint32_t blocks_for(uint64_t threads) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((threads + kBlock - 1) / kBlock, 1, kMostBlocks));
}

std::string unknown_value(const Imported& graph, int value) {
  if (value == kAbsent || graph.value(value).is_known) return {};
  return cat("the type or shape of value ", graph.value(value).name, " depends on data");
}

}  // namespace

std::string why_not(const Imported& graph, int index) {
  const NodeInfo& node = graph.nodes[static_cast<size_t>(index)];
  if (!node.unbound.empty()) return node.unbound;
  for (const std::vector<int>* list : {&node.in, &node.out}) {
    for (int value : *list) {
      if (std::string why = unknown_value(graph, value); !why.empty()) return why;
    }
  }
  if (node.input(0) == kAbsent || node.output(0) == kAbsent) return "no first input or output";
  for (int value : node.out) {
    if (value != kAbsent && graph.value(value).count() == 0) return "an empty tensor";
  }
  for (int value : node.in) {
    if (value != kAbsent && graph.value(value).count() == 0 && value == node.input(0)) {
      return "an empty tensor";
    }
  }
  if (is_pointwise(graph, node)) return refuse_pointwise(graph, node);
  const Handler* handler = find_handler(node.op);
  return handler ? handler->refuse(graph, node) : "no kernel for this operator";
}

Result<Plan> lower(const Imported& graph) {
  return Lowering(graph).run();
}

Lowering::Lowering(const Imported& graph)
    : graph_(graph),
      buffer_of_(graph.values.size(), kAbsent),
      root_of_(graph.nodes.size()),
      is_absorbed_(graph.nodes.size(), false) {
  for (size_t i = 0; i < root_of_.size(); ++i)
    root_of_[i] = static_cast<int>(i);
}

Result<Plan> Lowering::run() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    std::string why = why_not(graph_, static_cast<int>(i));
    if (!why.empty()) return unsupported(cat("cuda: node ", graph_.nodes[i].name, ": ", why));
  }
  place_boundary();
  find_tails();
  find_groups();
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const NodeInfo& node = graph_.nodes[i];
    int index = static_cast<int>(i);
    if (is_absorbed_[i] || root_of_[i] != index) continue;
    if (is_pointwise(graph_, node)) {
      lower_group(index);
    } else {
      find_handler(node.op)->lower(*this, node);
    }
  }
  finish_outputs();
  keep_states();
  lay_out_arena(plan_);
  return std::move(plan_);
}

bool Lowering::is_state(int value, bool after) const {
  return std::any_of(graph_.states.begin(), graph_.states.end(), [&](const StateInfo& state) {
    return (after ? state.after : state.before) == value;
  });
}

void Lowering::place_boundary() {
  auto boundary = [&](int value, Place place, int index) {
    buffer_of_[static_cast<size_t>(value)] = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back({this->value(value).name, this->value(value).bytes(), place, index, 0});
  };
  auto signature = [&](int value) {
    return Signature{this->value(value).name, this->value(value).dtype, this->value(value).dims};
  };
  for (int input : graph_.inputs) {
    if (is_state(input, false)) continue;
    boundary(input, Place::kInput, static_cast<int>(plan_.inputs.size()));
    plan_.inputs.push_back(signature(input));
  }
  for (const StateInfo& state : graph_.states) {
    boundary(state.before, Place::kState, static_cast<int>(plan_.states.size()));
    Signature sign = signature(state.before);
    sign.name = state.name;
    plan_.states.push_back(sign);
  }
  for (int output : graph_.outputs) {
    if (is_state(output, true)) continue;
    // A value made here lies in the first output that it is; inputs and the like are copied.
    if (this->value(output).producer != kAbsent &&
        buffer_of_[static_cast<size_t>(output)] == kAbsent) {
      boundary(output, Place::kOutput, static_cast<int>(plan_.outputs.size()));
    }
    plan_.outputs.push_back(signature(output));
  }
}

int Lowering::buffer(int index) {
  int& made = buffer_of_[static_cast<size_t>(index)];
  if (made != kAbsent) return made;
  const ValueInfo& info = value(index);
  made = static_cast<int>(plan_.buffers.size());
  Buffer buffer{info.name, info.bytes(), Place::kArena, 0, 0};
  if (info.constant) {
    buffer.place = Place::kConstant;
    buffer.index = static_cast<int>(plan_.constants.size());
    plan_.constants.push_back(info.constant);
  }
  plan_.buffers.push_back(std::move(buffer));
  return made;
}

void Lowering::alias(int index, int of) {
  int source = buffer(of);
  int& target = buffer_of_[static_cast<size_t>(index)];
  if (target == kAbsent) {
    target = source;
    return;
  }
  // It has a place of its own, an output's: there is no way round a copy.
  uint64_t bytes = value(index).bytes();
  add({value(index).name,
       "copy",
       "memcpy",
       Move{source, target, bytes},
       {source},
       {target},
       0,
       2.0 * static_cast<double>(bytes)});
}

int Lowering::scratch(std::string name, uint64_t bytes) {
  plan_.buffers.push_back({std::move(name), bytes, Place::kArena, 0, 0});
  return static_cast<int>(plan_.buffers.size()) - 1;
}

uint32_t Lowering::fault(std::string meaning) {
  plan_.faults.push_back(std::move(meaning));
  return static_cast<uint32_t>(plan_.faults.size());
}

void Lowering::add_launch(const NodeInfo& node, Launch launch, size_t n_reads, double flops) {
  Step step{node.name, node.op, launch.symbol, Launch(), {}, {}, flops, 0};
  for (size_t i = 0; i < launch.patches.size(); ++i) {
    int buffer = launch.patches[i].buffer;
    if (buffer < 0) continue;
    (i < n_reads ? step.reads : step.writes).push_back(buffer);
    step.bytes += static_cast<double>(plan_.buffers[static_cast<size_t>(buffer)].bytes);
  }
  step.work = std::move(launch);
  add(std::move(step));
}

void Lowering::add_strided_copy(
    const NodeInfo& node, uint32_t dtype, Dims dims, Strided from, Strided to) {
  CopyArgs args{};
  uint64_t unit = bytes_of(dtype, 1);
  std::vector<int64_t> extents, sources, targets;  // the innermost first, neighbours merged
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) continue;
    if (!extents.empty() && from.strides[axis] == sources.back() * extents.back() &&
        to.strides[axis] == targets.back() * extents.back()) {
      extents.back() *= dims[axis];
      continue;
    }
    extents.push_back(dims[axis]);
    sources.push_back(from.strides[axis]);
    targets.push_back(to.strides[axis]);
  }
  if (extents.empty()) extents = sources = targets = {1};
  // Neighbouring elements travel together, as far as everything stays a multiple of them.
  auto fits = [](int64_t x) { return x % 2 == 0; };
  int64_t from_offset = from.offset, to_offset = to.offset;
  while (unit < 16 && sources[0] == 1 && targets[0] == 1 && fits(extents[0]) && fits(from_offset) &&
         fits(to_offset) && std::all_of(sources.begin() + 1, sources.end(), fits) &&
         std::all_of(targets.begin() + 1, targets.end(), fits)) {
    unit *= 2;
    extents[0] /= 2;
    from_offset /= 2;
    to_offset /= 2;
    for (size_t axis = 1; axis < extents.size(); ++axis) {
      sources[axis] /= 2;
      targets[axis] /= 2;
    }
  }
  args.rank = extents.size();
  args.count = static_cast<uint64_t>(element_count(extents));
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    args.dims[axis] = static_cast<uint64_t>(extents[axis]);
    args.from_strides[axis] = sources[axis];
    args.to_strides[axis] = targets[axis];
  }
  Launch made = launch(cat("copy_", unit), args);
  made.block = kBlock;
  made.grid = blocks_for(args.count);
  made.patches = {
      {offsetof(CopyArgs, from), from.buffer, static_cast<uint64_t>(from_offset) * unit},
      {offsetof(CopyArgs, to), to.buffer, static_cast<uint64_t>(to_offset) * unit}};
  add_launch(node, std::move(made), 1, 0);
}

Lowering::Tail Lowering::tail_of(const NodeInfo& node) const {
  auto found = tails_.find(static_cast<int>(&node - graph_.nodes.data()));
  return found == tails_.end() ? Tail{kAbsent, Activation::kNone, node.out[0]} : found->second;
}

void Lowering::find_tails() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    std::vector<int> absorbed;
    Tail tail;
    if (!find_tail(graph_, static_cast<int>(i), &tail, &absorbed)) continue;
    for (int node : absorbed)
      is_absorbed_[static_cast<size_t>(node)] = true;
    tails_[static_cast<int>(i)] = tail;
  }
}

// From the last node to the first: a pointwise node joins the group of its user when all its users
// are of that group and it has the group's shape. So a group has one result, and no way out of it
// leads back in.
void Lowering::find_groups() {
  std::vector<int> size(graph_.nodes.size(), 1);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const NodeInfo& node = graph_.nodes[i];
    if (is_absorbed_[i] || !is_pointwise(graph_, node)) continue;
    const ValueInfo& result = value(node.out[0]);
    if (result.is_output || result.users.empty()) continue;
    int root = root_of_[static_cast<size_t>(result.users[0])];
    const NodeInfo& last = graph_.nodes[static_cast<size_t>(root)];
    bool joins = is_pointwise(graph_, last) && !is_absorbed_[static_cast<size_t>(root)] &&
                 size[static_cast<size_t>(root)] < kGroupNodes &&
                 value(last.out[0]).dims == result.dims;
    for (int user : result.users)
      joins = joins && root_of_[static_cast<size_t>(user)] == root &&
              !is_absorbed_[static_cast<size_t>(user)];
    if (!joins) continue;
    root_of_[i] = root;
    ++size[static_cast<size_t>(root)];
  }
}

void Lowering::lower_group(int root) {
  std::vector<int> members;
  for (size_t i = 0; i <= static_cast<size_t>(root); ++i) {
    if (root_of_[i] == root && !is_absorbed_[i]) members.push_back(static_cast<int>(i));
  }
  BuiltGroup built = build_group(graph_, members);
  const NodeInfo& node = graph_.nodes[static_cast<size_t>(root)];
  Launch launch;
  launch.symbol = built.text.symbol;
  launch.source = std::move(built.text.source);
  launch.arguments.resize(built.text.words.size() * sizeof(uint64_t));
  std::memcpy(launch.arguments.data(), built.text.words.data(), launch.arguments.size());
  launch.block = kBlock;
  launch.grid = blocks_for(built.vectors);
  for (size_t i = 0; i < built.inputs.size(); ++i)
    launch.patches.push_back({static_cast<uint32_t>(i * 8), buffer(built.inputs[i]), 0});
  launch.patches.push_back(
      {static_cast<uint32_t>(built.inputs.size() * 8), buffer(node.out[0]), 0});
  double count = static_cast<double>(value(node.out[0]).count());
  add_launch(node, std::move(launch), built.inputs.size(),
             count * static_cast<double>(members.size()));
}

// Outputs that are inputs, constants or another output.
void Lowering::finish_outputs() {
  int position = 0;
  for (int output : graph_.outputs) {
    if (is_state(output, true)) continue;
    int source = buffer(output);
    const Buffer& at = plan_.buffers[static_cast<size_t>(source)];
    if (at.place != Place::kOutput || at.index != position) {
      uint64_t bytes = at.bytes;
      int target = static_cast<int>(plan_.buffers.size());
      plan_.buffers.push_back({at.name, bytes, Place::kOutput, position, 0});
      add({value(output).name,
           "copy",
           "memcpy",
           Move{source, target, bytes},
           {source},
           {target},
           0,
           2.0 * static_cast<double>(bytes)});
    }
    ++position;
  }
}

// New values replace the old ones when all have been computed. One that is another state's old
// value is set aside first.
void Lowering::keep_states() {
  std::vector<Step> last;
  for (const StateInfo& state : graph_.states) {
    int from = buffer(state.after), to = buffer(state.before);
    uint64_t bytes = value(state.before).bytes();
    if (from == to) continue;
    if (plan_.buffers[static_cast<size_t>(from)].place == Place::kState) {
      int aside = scratch(cat(state.name, " set aside"), bytes);
      add({state.name, "state", "memcpy", Move{from, aside, bytes}, {from}, {aside}, 0, 0});
      from = aside;
    }
    last.push_back({state.name,
                    "state",
                    "memcpy",
                    Move{from, to, bytes},
                    {from},
                    {to},
                    0,
                    2.0 * static_cast<double>(bytes)});
  }
  for (Step& step : last)
    add(std::move(step));
}

}  // namespace tenon::cuda

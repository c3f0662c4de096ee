// SPDX-License-Identifier: Apache-2.0
#include "lowering.hpp"

#include <algorithm>

#include "fold_transposes.hpp"
#include "handlers/handlers.hpp"
#include "handlers/launch_sizes.hpp"
#include "kernels/copy_args.h"
#include "low_precision_gemm.hpp"
#include "pointwise_group.hpp"
#include "split_batch_norms.hpp"
#include "split_biases.hpp"

namespace tenon::cuda {

std::string why_not(const Imported& graph, int index, const Target& target) {
  const NodeInfo& node = graph.nodes[static_cast<size_t>(index)];
  if (std::string why = backend::why_not_static(graph, index); !why.empty()) return why;
  if (node.input(0) == kNone || node.output(0) == kNone) return "no first input or output";
  for (int value : node.outputs) {
    if (value != kNone && graph.value(value).count() == 0) return "an empty tensor";
  }
  for (int value : node.inputs) {
    if (value != kNone && graph.value(value).count() == 0 && value == node.input(0)) {
      return "an empty tensor";
    }
  }
  if (is_pointwise(graph, node)) return refuse_pointwise(graph, node);
  const Handler* handler = find_handler(node.op);
  if (!handler) return "no kernel for this operator";
  std::string why = handler->refuse(graph, node);
  return why.empty() && handler->why_no_plan ? handler->why_no_plan(graph, node, target) : why;
}

Result<Plan> lower(const Imported& graph, const Target& target) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::string why = why_not(graph, static_cast<int>(i), target);
    if (!why.empty()) return unsupported(cat("cuda: node ", graph.nodes[i].name, ": ", why));
  }
  std::vector<std::string> notes;
  Imported ready = split_batch_norms(split_biases(graph, target));
  if (target.ctx) ready = join_low_precision_gemms(ready, target, &notes);
  ready = fold_transposes(ready, target);
  TN_TRY(plan, Lowering(ready, target).run());
  plan.notes = std::move(notes);
  return plan;
}

Lowering::Lowering(const Imported& graph, const Target& target)
    : graph_(graph),
      target_(target),
      layouts_(graph.values.size()),
      is_absorbed_(graph.nodes.size(), false) {}

Result<Plan> Lowering::run() {
  place_boundary();
  find_epilogues();
  find_groups();
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const NodeInfo& node = graph_.nodes[i];
    int index = static_cast<int>(i);
    if (is_absorbed_[i] || groups_.root_of(index) != index) continue;
    if (is_pointwise(graph_, node)) {
      lower_group(index);
    } else {
      find_handler(node.op)->lower(*this, node);
    }
  }
  finish_outputs();
  keep_states();
  join_launches(plan_);
  TN_CHECK(lay_out_arena(plan_));
  return std::move(plan_);
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
  made.block = kElementBlock;
  made.grid = element_grid(args.count);
  made.patches = {
      {offsetof(CopyArgs, from), from.buffer, static_cast<uint64_t>(from_offset) * unit},
      {offsetof(CopyArgs, to), to.buffer, static_cast<uint64_t>(to_offset) * unit}};
  add_launch(node, std::move(made), 1, 0);
}

Lowering::Epilogue Lowering::epilogue_of(const NodeInfo& node) const {
  auto found = epilogues_.find(static_cast<int>(&node - graph_.nodes.data()));
  return found == epilogues_.end() ? no_epilogue(node) : found->second;
}

// The longest epilogue that there is a plan for: with a residual, without one, or none.
void Lowering::find_epilogues() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    for (bool takes_residuals : {true, false}) {
      std::vector<int> absorbed;
      Epilogue epilogue;
      bool is_found =
          find_epilogue(graph_, static_cast<int>(i), takes_residuals, &epilogue, &absorbed);
      if (!is_found) break;
      if (!has_plan_with(graph_.nodes[i], epilogue)) continue;
      for (int node : absorbed)
        is_absorbed_[static_cast<size_t>(node)] = true;
      epilogues_[static_cast<int>(i)] = epilogue;
      break;
    }
  }
}

bool Lowering::has_plan_with(const NodeInfo& node, const Epilogue& epilogue) const {
  if (node.op != "Conv")
    return !target_.why_no_product ||
           target_.why_no_product(product_of(graph_, node, epilogue)).empty();
  return !target_.why_no_convolution ||
         target_.why_no_convolution(convolution_of(graph_, node, epilogue)).empty();
}

void Lowering::find_groups() {
  auto is_member = [&](int node) {
    return !is_absorbed_[static_cast<size_t>(node)] && is_pointwise(graph_, graph_.node(node));
  };
  auto joins = [&](int, int root, size_t n_nodes, size_t n_operands) {
    const Dims& dims = value(graph_.node(root).outputs[0]).dims;
    return n_nodes <= kGroupNodes && n_operands <= most_inputs(dims);
  };
  groups_ = backend::Groups::find(graph_, is_member, joins);
}

void Lowering::lower_group(int root) {
  const std::vector<int>& members = groups_.members(root);
  const NodeInfo& node = graph_.nodes[static_cast<size_t>(root)];
  GatheredGroup gathered = gather_group(graph_, members);
  bool last = is_better_channels_last(node.outputs[0], gathered.inputs);
  if (last) put_channels_last(&gathered.group);
  PointwiseText text = pointwise_text(gathered.group);
  Launch launch;
  launch.symbol = text.symbol;
  launch.source = std::move(text.source);
  launch.arguments.resize(text.words.size() * sizeof(uint64_t));
  std::memcpy(launch.arguments.data(), text.words.data(), launch.arguments.size());
  launch.is_elementwise = true;
  launch.block = kElementBlock;
  launch.grid = element_grid(static_cast<uint64_t>(layout_of(gathered.group).count));
  uint32_t at = 0;
  for (int input : gathered.inputs) {
    // One of fewer axes has no channels to put last: see is_better_channels_last.
    bool turns = last && value(input).dims.size() == gathered.group.dims.size();
    launch.patches.push_back({at, turns ? channels_last(input) : buffer(input), 0});
    at += 8;
  }
  int out = last ? new_channels_last(node.outputs[0]) : buffer(node.outputs[0]);
  launch.patches.push_back({at, out, 0});
  double count = static_cast<double>(value(node.outputs[0]).count());
  add_launch(node, std::move(launch), gathered.inputs.size(),
             count * static_cast<double>(members.size()));
}

// The layout in which most of what is read lies already.
bool Lowering::is_better_channels_last(int result, const std::vector<int>& inputs) const {
  const ValueInfo& info = value(result);
  if (!has_two_layouts(info.dims)) return false;
  uint64_t last = 0, plain = 0;
  for (int input : inputs) {
    const ValueInfo& from = value(input);
    if (from.dims.size() < info.dims.size()) {  // it stays in rows, which must be the same
      Dims aligned(info.dims.size() - from.dims.size(), 1);
      aligned.insert(aligned.end(), from.dims.begin(), from.dims.end());
      if (has_two_layouts(aligned)) return false;
    }
    if (from.dims == info.dims && !from.constant)
      (lies_channels_last(input) ? last : plain) += from.bytes();
  }
  return last > plain || (last > 0 && last == plain && info.n_outputs == 0);
}

}  // namespace tenon::cuda

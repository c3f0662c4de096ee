// SPDX-License-Identifier: Apache-2.0
#include "shape_guard.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

constexpr size_t kParameter = 1;
constexpr const char* kOtherShape = "the parameters give another shape than was compiled";

// Whether the numbers of the parameter lead to the compiled shape.
using Agrees = bool (*)(const Dims& from, const Dims& to, const Dims& numbers, bool zero_is_size);

bool sizes_agree(const Dims& from, const Dims& to, const Dims& sizes, bool zero_is_size) {
  if (sizes.size() != to.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    bool is_kept = sizes[i] == 0 && !zero_is_size;
    if (is_kept && i >= from.size()) return false;
    int64_t size = is_kept ? from[i] : sizes[i];
    if (size != to[i] && size != -1) return false;  // -1: what the others leave
  }
  return true;
}

bool broadcast_agrees(const Dims& from, const Dims& to, const Dims& sizes, bool) {
  if (to.size() != std::max(from.size(), sizes.size())) return false;
  for (size_t back = 1; back <= to.size(); ++back) {
    int64_t ours = back <= from.size() ? from[from.size() - back] : 1;
    int64_t theirs = back <= sizes.size() ? sizes[sizes.size() - back] : 1;
    if (ours != theirs && ours != 1 && theirs != 1) return false;
    if (to[to.size() - back] != (ours == 1 ? theirs : ours)) return false;
  }
  return true;
}

// `whole` without the axes is `rest`, and each of them has one element.
bool are_unit_axes(const Dims& whole, const Dims& rest, const Dims& axes) {
  std::vector<bool> is_taken(whole.size(), false);
  for (int64_t axis : axes) {
    int64_t at = positive_axis(axis, whole.size());
    if (at < 0 || at >= static_cast<int64_t>(whole.size())) return false;
    if (whole[static_cast<size_t>(at)] != 1) return false;
    is_taken[static_cast<size_t>(at)] = true;
  }
  Dims left;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (!is_taken[i]) left.push_back(whole[i]);
  }
  return left == rest;
}
bool squeezed_agrees(const Dims& from, const Dims& to, const Dims& axes, bool) {
  return are_unit_axes(from, to, axes);
}
bool unsqueezed_agrees(const Dims& from, const Dims& to, const Dims& axes, bool) {
  return are_unit_axes(to, from, axes);
}

// `to`: the extents of the parts along the axis.
bool parts_agree(const Dims&, const Dims& to, const Dims& sizes, bool) {
  return sizes == to;
}

constexpr std::pair<std::string_view, Agrees> kRules[] = {
    {"Reshape", sizes_agree},         {"Expand", broadcast_agrees}, {"Squeeze", squeezed_agrees},
    {"Unsqueeze", unsqueezed_agrees}, {"Split", parts_agree},
};

Dims part_extents(const Graph& graph, const Node& node) {
  Dims extents;
  for (int output : node.outputs) {
    const Dims& dims = graph.values[output].dims;
    extents.push_back(
        dims[static_cast<size_t>(positive_axis(node.integer("axis", 0), dims.size()))]);
  }
  return extents;
}

}  // namespace

void guard_shape(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  if (node.input(kParameter) == kNone || lowering.is_constant(node.inputs[kParameter])) return;
  auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                            [&](const auto& row) { return row.first == node.op; });
  if (rule == std::end(kRules)) return;
  const Value& parameter = graph.values[node.inputs[kParameter]];
  const Dims from = graph.values[node.inputs[0]].dims;
  const Dims to =
      node.op == "Split" ? part_extents(graph, node) : graph.values[node.outputs[0]].dims;
  bool zero_is_size = node.integer("allowzero", 0) != 0;
  Step step{.name = node.name, .op = node.op, .kernel = "tenon:check"};
  step.places.push_back(place_of(lowering.read_row_major(node.inputs[kParameter], parameter.type)));
  step.kernel_function = [=, agrees = rule->second, count = parameter.count(),
                          type = parameter.type](const kernels::Context&,
                                                 void* const* pointers) -> const char* {
    Dims numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      numbers[static_cast<size_t>(i)] = integer_at(pointers[0], type, i);
    return agrees(from, to, numbers, zero_is_size) ? nullptr : kOtherShape;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn

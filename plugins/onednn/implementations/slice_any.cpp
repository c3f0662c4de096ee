// SPDX-License-Identifier: Apache-2.0
#include "slice_any.hpp"

#include <algorithm>

#include "axis_map.hpp"

namespace tenon::onednn {
namespace {

constexpr const char* kOtherShape = "the parameters give another shape than was compiled";
constexpr const char* kBadAxis = "an axis is outside of the tensor's axes";

// A list of integers that may be absent: values of an input, read at run time.
struct List {
  size_t input = 0;
  ElementType type = ElementType::kI64;
  int64_t count = -1;  // absent

  int64_t at(void* const* parameters, int64_t i) const {
    return integer_at(parameters[input], type, i);
  }
};
List list_of(const Graph& graph, const Node& node, size_t input) {
  if (node.input(input) == kNone) return {input};
  const Value& value = graph.values[node.inputs[input]];
  return {input, value.type, value.count()};
}

void fill_identity(const AxisTables& tables) {
  int64_t* entry = tables.entries;
  for (int64_t dim : tables.to) {
    for (int64_t i = 0; i < dim; ++i)
      *entry++ = i;
  }
}
int64_t* entries_of(const AxisTables& tables, int64_t axis) {
  int64_t* entry = tables.entries;
  for (int64_t i = 0; i < axis; ++i)
    entry += tables.to[static_cast<size_t>(i)];
  return entry;
}

struct SliceLists {
  List starts, ends, axes, steps;
};

const char* fill_slice(const SliceLists& lists, const AxisTables& tables) {
  fill_identity(tables);
  int64_t changed = 0;
  for (int64_t i = 0; i < lists.starts.count; ++i) {
    int64_t axis = lists.axes.count < 0 ? i : lists.axes.at(tables.parameters, i);
    axis = positive_axis(axis, tables.from.size());
    if (axis < 0 || axis >= static_cast<int64_t>(tables.from.size())) return kBadAxis;
    int64_t extent = tables.from[static_cast<size_t>(axis)];
    int64_t step = lists.steps.count < 0 ? 1 : lists.steps.at(tables.parameters, i);
    int64_t start = lists.starts.at(tables.parameters, i);
    int64_t end = lists.ends.at(tables.parameters, i);
    if (step == 0) return "a step is 0";
    auto place = [&](int64_t at) {
      int64_t counted = at < -extent ? -1 : (at < 0 ? at + extent : at);
      return step > 0 ? std::clamp<int64_t>(counted, 0, extent)
                      : std::clamp<int64_t>(counted, -1, extent - 1);
    };
    start = place(start);
    end = place(end);
    int64_t span = step > 0 ? end - start : start - end;
    int64_t width = step > 0 ? step : -std::max(step, -INT64_MAX);
    int64_t count = span <= 0 ? 0 : (span - 1) / width + 1;
    if (count != tables.to[static_cast<size_t>(axis)]) return kOtherShape;
    int64_t* entry = entries_of(tables, axis);
    for (int64_t k = 0; k < count; ++k)
      entry[k] = start + k * step;
    changed |= int64_t{1} << axis;
  }
  for (size_t axis = 0; axis < tables.from.size(); ++axis) {
    bool is_same = tables.from[axis] == tables.to[axis];
    if ((changed >> axis & 1) == 0 && !is_same) return kOtherShape;
  }
  return nullptr;
}

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };
PadMode pad_mode(const Node& node) {
  std::string mode = node.text("mode", "constant");
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  return mode == "wrap" ? PadMode::kWrap : PadMode::kConstant;
}

struct AxisPads {
  int64_t begin, end;
};

// Where entry k of a padded axis takes its value from. What negative pads cut is gone before the
// others repeat what is left, as the row says.
int64_t padded_from(PadMode mode, int64_t k, int64_t whole, AxisPads pads) {
  int64_t cut = std::max<int64_t>(0, -pads.begin);
  int64_t size = whole - cut - std::max<int64_t>(0, -pads.end);
  int64_t at = k - std::max<int64_t>(0, pads.begin);
  if (at >= 0 && at < size) return cut + at;
  if (mode == PadMode::kConstant || size <= 0) return -1;
  if (mode == PadMode::kEdge) return cut + std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == PadMode::kWrap ? size : std::max<int64_t>(1, 2 * (size - 1));
  int64_t place = (at % period + period) % period;
  return cut + (place < size ? place : period - place);
}

const char* fill_pad(PadMode mode, const List& pads, const List& axes, const AxisTables& tables) {
  fill_identity(tables);
  int64_t rank = static_cast<int64_t>(tables.from.size());
  int64_t n = axes.count < 0 ? rank : axes.count;
  if (pads.count != 2 * n) return "expected two pads for each axis";
  int64_t changed = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t axis = axes.count < 0 ? i : axes.at(tables.parameters, i);
    axis = positive_axis(axis, tables.from.size());
    if (axis < 0 || axis >= rank) return kBadAxis;
    int64_t size = tables.from[static_cast<size_t>(axis)];
    int64_t out = tables.to[static_cast<size_t>(axis)];
    AxisPads both{pads.at(tables.parameters, i), pads.at(tables.parameters, i + n)};
    if (size + both.begin + both.end != out) return kOtherShape;
    int64_t* entry = entries_of(tables, axis);
    for (int64_t k = 0; k < out; ++k)
      entry[k] = padded_from(mode, k, size, both);
    changed |= int64_t{1} << axis;
  }
  for (size_t axis = 0; axis < tables.from.size(); ++axis) {
    bool is_same = tables.from[axis] == tables.to[axis];
    if ((changed >> axis & 1) == 0 && !is_same) return kOtherShape;
  }
  return nullptr;
}

const char* fill_tile(const List& repeats, const AxisTables& tables) {
  if (repeats.count != static_cast<int64_t>(tables.from.size())) {
    return "expected one number of repeats for each axis";
  }
  int64_t* entry = tables.entries;
  for (size_t axis = 0; axis < tables.to.size(); ++axis) {
    int64_t times = repeats.at(tables.parameters, static_cast<int64_t>(axis));
    if (tables.from[axis] * times != tables.to[axis]) return kOtherShape;
    for (int64_t i = 0; i < tables.to[axis]; ++i)
      *entry++ = i % tables.from[axis];
  }
  return nullptr;
}

std::string refuse_lists(const Graph& graph,
                         const Node& node,
                         std::initializer_list<size_t> lists) {
  size_t rank = graph.values[node.inputs[0]].dims.size();
  if (rank == 0 || rank > 8) return "only 1 to 8 axes";
  for (size_t input : lists) {
    if (!is_integer_parameter(graph, node, input)) return "only i32 and i64 parameters";
  }
  return {};
}

}  // namespace

std::string refuse_slice_any(const Graph& graph, const Node& node) {
  if (node.input(1) == kNone || node.input(2) == kNone) return "starts or ends are missing";
  int64_t n = graph.values[node.inputs[1]].count();
  for (size_t input : {2, 3, 4}) {
    bool fits = node.input(input) == kNone || graph.values[node.inputs[input]].count() == n;
    if (!fits) return "starts, ends, axes and steps of different lengths";
  }
  return refuse_lists(graph, node, {1, 2, 3, 4});
}

void lower_slice_any(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  SliceLists lists{list_of(graph, node, 1), list_of(graph, node, 2), list_of(graph, node, 3),
                   list_of(graph, node, 4)};
  lower_axis_map(lowering, index, "tenon:slice", kNoFiller,
                 [lists](const AxisTables& tables) { return fill_slice(lists, tables); });
}

std::string refuse_pad_any(const Graph& graph, const Node& node) {
  if (node.input(1) == kNone) return "pads as an attribute";
  bool has_filler = node.input(2) != kNone;
  if (has_filler && graph.values[node.inputs[2]].count() != 1) return "a filler that is no scalar";
  return refuse_lists(graph, node, {1, 3});
}

void lower_pad_any(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  PadMode mode = pad_mode(node);
  List pads = list_of(graph, node, 1);
  List axes = list_of(graph, node, 3);
  const int given = node.input(2) == kNone ? kNone : 2;
  const int filler = mode == PadMode::kConstant ? given : kNoFiller;
  lower_axis_map(
      lowering, index, "tenon:pad", filler,
      [mode, pads, axes](const AxisTables& tables) { return fill_pad(mode, pads, axes, tables); });
}

std::string refuse_tile(const Graph& graph, const Node& node) {
  return refuse_lists(graph, node, {1});
}

void lower_tile(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  List repeats = list_of(graph, graph.nodes[index], 1);
  lower_axis_map(lowering, index, "tenon:tile", kNoFiller,
                 [repeats](const AxisTables& tables) { return fill_tile(repeats, tables); });
}

}  // namespace tenon::onednn

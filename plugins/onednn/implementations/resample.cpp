// SPDX-License-Identifier: Apache-2.0
#include "resample.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "axis_map.hpp"
#include "dense.hpp"
#include "resample_axis.hpp"
#include "taps.hpp"

namespace tenon::onednn {
namespace {

constexpr size_t kMostAxes = 8;

// What one node wants, but for numbers that only a run knows.
struct Resample {
  ResizeRule rule;
  Dims from;
  Dims to;
  Dims axes;                              // of the lists in the inputs
  std::vector<size_t> memory;             // all axes in memory order, outermost first
  size_t roi = 0, scales = 0, sizes = 0;  // inputs; 0: absent
  ElementType sizes_type = ElementType::kI64;
  std::string policy;
  float extrapolation = 0;
  size_t n_inputs = 1;
};

using Axes = std::array<ResizeAxis, kMostAxes>;

// keep_aspect_ratio_policy: one scale for all axes, the smallest or the largest.
void share_scale(const Resample& r, Axes& axes) {
  if (r.policy == "stretch") return;
  bool is_least = r.policy == "not_larger";
  double scale = axes[static_cast<size_t>(r.axes[0])].scale;
  for (int64_t axis : r.axes) {
    double own = axes[static_cast<size_t>(axis)].scale;
    scale = is_least ? std::min(scale, own) : std::max(scale, own);
  }
  for (int64_t axis : r.axes) {
    ResizeAxis& a = axes[static_cast<size_t>(axis)];
    a.scale = scale;
    a.out = static_cast<int64_t>(std::floor(scale * static_cast<double>(a.in) + 0.5));
  }
}

const char* read_axes(const Resample& r, void* const* pointers, Axes& axes) {
  for (size_t axis = 0; axis < r.from.size(); ++axis)
    axes[axis] = {.in = r.from[axis], .out = r.from[axis]};
  for (size_t i = 0; i < r.axes.size(); ++i) {
    ResizeAxis& a = axes[static_cast<size_t>(r.axes[i])];
    if (r.sizes > 0) {
      a.out = integer_at(pointers[r.sizes], r.sizes_type, static_cast<int64_t>(i));
      a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    } else {
      const float scale = static_cast<const float*>(pointers[r.scales])[i];
      a.scale = static_cast<double>(scale);
      // In float, as shape inference has it.
      a.out = static_cast<int64_t>(std::floor(static_cast<float>(a.in) * scale));
    }
    if (!(a.scale > 0)) return "a scale is not above 0";
    if (r.roi > 0) {
      const float* roi = static_cast<const float*>(pointers[r.roi]);
      a.roi_start = static_cast<double>(roi[i]);
      a.roi_end = static_cast<double>(roi[i + r.axes.size()]);
    }
  }
  if (r.sizes > 0) share_scale(r, axes);
  for (size_t axis = 0; axis < r.from.size(); ++axis) {
    if (axes[axis].out != r.to[axis]) return "the sizes are not those that were compiled";
  }
  return nullptr;
}

// The axes that change, as positions in memory order. What shrinks the data most goes first; of the
// rest the last axis, whose results are gathered one by one, while there are few of them.
std::vector<size_t> in_turn(const Resample& r, const Axes& axes) {
  std::vector<size_t> turn;
  for (size_t i = 0; i < r.memory.size(); ++i)
    if (!axes[r.memory[i]].is_same(r.rule)) turn.push_back(i);
  std::ranges::stable_sort(turn, [&](size_t a, size_t b) {
    const double first = axes[r.memory[a]].scale, second = axes[r.memory[b]].scale;
    return first != second ? first < second : (first < 1 ? a < b : a > b);
  });
  return turn;
}

const char* run(const Resample& r, const kernels::Context& context, void* const* pointers) {
  const int64_t count = element_count(r.to);
  if (count == 0) return nullptr;
  Axes axes;
  if (const char* why = read_axes(r, pointers, axes)) return why;
  int64_t room = 1;  // of one intermediate
  for (size_t axis = 0; axis < r.from.size(); ++axis)
    room *= std::max(r.from[axis], r.to[axis]);
  float* rooms[2] = {static_cast<float*>(pointers[r.n_inputs + 1]), nullptr};
  rooms[1] = rooms[0] + room;
  int64_t* at = reinterpret_cast<int64_t*>(rooms[1] + room);
  const float* src = static_cast<const float*>(pointers[0]);
  float* dst = static_cast<float*>(pointers[r.n_inputs]);
  Dims now;  // in memory order
  for (size_t axis : r.memory)
    now.push_back(r.from[axis]);
  const std::vector<size_t> turn = in_turn(r, axes);
  for (size_t i = 0; i < turn.size(); ++i) {
    const ResizeAxis& axis = axes[r.memory[turn[i]]];
    const AxisSplit split = split_at(now, static_cast<int64_t>(turn[i]));
    ResampleAxis one{split.outer, axis.in, axis.out, split.inner};
    one.taps = tap_count(r.rule, axis.scale);
    float* weight = reinterpret_cast<float*>(at + axis.out * one.taps);
    fill_taps(r.rule, axis, one.taps, at, weight);
    one.at = at;
    one.weight = weight;
    one.extrapolation = r.extrapolation;
    float* made = i + 1 == turn.size() ? dst : rooms[i % 2];
    resample_axis(context, one, src, made);
    src = made;
    now[turn[i]] = axis.out;
  }
  if (turn.empty()) std::copy_n(src, count, dst);
  return nullptr;
}

// Bounds what a run keeps in its tables, before scales are known: a scale that makes the size by
// rounding is at least half of what the size says.
int64_t table_bytes(const Resample& r, size_t axis) {
  const double least_scale =
      0.5 * static_cast<double>(r.to[axis]) / static_cast<double>(r.from[axis]);
  const int64_t bytes_of_tap = sizeof(int64_t) + sizeof(float);
  return r.to[axis] == 0 ? 0 : r.to[axis] * tap_count(r.rule, least_scale) * bytes_of_tap;
}

size_t given(const Graph& graph, const Node& node, size_t input) {
  bool is_there = node.input(input) != kNone && graph.values[node.inputs[input]].count() > 0;
  return is_there ? input : 0;
}

Resample resample_of(const Graph& graph, const Node& node) {
  Resample r;
  std::string mode = node.text("mode", "nearest");
  using Mode = ResizeRule::Mode;
  r.rule.mode =
      mode == "cubic" ? Mode::kCubic : (mode == "linear" ? Mode::kLinear : Mode::kNearest);
  r.rule.coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  r.rule.nearest = node.text("nearest_mode", "round_prefer_floor");
  r.rule.cubic = node.real("cubic_coeff_a", -0.75);
  r.rule.antialias = node.integer("antialias", 0) != 0;
  r.rule.exclude_outside = node.integer("exclude_outside", 0) != 0;
  r.from = graph.values[node.inputs[0]].dims;
  r.to = graph.values[node.outputs[0]].dims;
  Dims all(r.from.size());
  std::iota(all.begin(), all.end(), 0);
  r.axes = node.integers("axes", all);
  if (r.axes.empty()) r.axes = all;
  for (int64_t& axis : r.axes)
    axis = positive_axis(axis, r.from.size());
  r.roi = r.rule.coordinates == "tf_crop_and_resize" ? given(graph, node, 1) : 0;
  r.scales = given(graph, node, 2);
  r.sizes = given(graph, node, 3);
  if (r.sizes > 0) r.sizes_type = graph.values[node.inputs[3]].type;
  r.policy = node.text("keep_aspect_ratio_policy", "stretch");
  r.extrapolation = static_cast<float>(node.real("extrapolation_value", 0));
  r.n_inputs = node.inputs.size();
  return r;
}

// Why results are not numbers of the source as they are.
std::string why_not_taken(const ResizeRule& rule) {
  if (rule.mode != ResizeRule::Mode::kNearest) return "means of neighbours";
  return rule.coordinates == "tf_crop_and_resize" ? "numbers from outside of the image" : "";
}

}  // namespace

bool is_by_whole_sizes(const Graph& graph, const Node& node) {
  Resample r = resample_of(graph, node);
  if (r.sizes > 0) return r.policy == "stretch" && graph.values[node.inputs[3]].data != nullptr;
  const Value& scales = graph.values[node.inputs[2]];
  if (scales.data == nullptr) return false;
  for (size_t i = 0; i < r.axes.size(); ++i) {
    size_t axis = static_cast<size_t>(r.axes[i]);
    float factor = static_cast<float>(r.to[axis]) / static_cast<float>(r.from[axis]);
    if (static_cast<const float*>(scales.data)[i] != factor) return false;
  }
  return true;
}

std::string refuse_resample(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.count() == 0) return "an empty tensor";
  if (src.dims.empty() || src.dims.size() > kMostAxes) return "only 1 to 8 axes";
  size_t scales = given(graph, node, 2);
  size_t sizes = given(graph, node, 3);
  if ((scales > 0) == (sizes > 0)) return "expected scales or sizes";
  Resample r = resample_of(graph, node);
  const bool only_moves = why_not_taken(r.rule).empty();
  if (src.type != ElementType::kF32 && !only_moves) return "means of numbers other than f32";
  int64_t n = static_cast<int64_t>(r.axes.size());
  const Value& list = graph.values[node.inputs[std::max(scales, sizes)]];
  if (list.count() != n) return "expected one scale or size for each axis";
  if (scales > 0 && list.type != ElementType::kF32) return "only f32 scales";
  if (sizes > 0 && !is_integer_parameter(graph, node, 3)) return "only i32 and i64 sizes";
  if (r.roi > 0 && (graph.values[node.inputs[1]].type != ElementType::kF32 ||
                    graph.values[node.inputs[1]].count() != 2 * n)) {
    return "only an f32 region with a start and an end for each axis";
  }
  for (int64_t axis : r.axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(src.dims.size())) return "an axis out of range";
  }
  return {};
}

void lower_resample(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  Resample r = resample_of(graph, node);
  int64_t room = 1;
  int64_t tables = 0;
  for (size_t axis = 0; axis < r.from.size(); ++axis) {
    room *= std::max(r.from[axis], r.to[axis]);
    tables = std::max(tables, table_bytes(r, axis));
  }
  // Any order of axes will do: channels stay where they lie.
  const View found = lowering.view(node.inputs[0]);
  const bool are_channels_last = is_channels_last(found) && !is_row_major(found);
  auto strides_of = [&](const Dims& dims) {
    return are_channels_last ? channels_last_strides(dims) : row_major_strides(dims);
  };
  r.memory.resize(r.from.size());
  std::iota(r.memory.begin(), r.memory.end(), size_t{0});
  if (are_channels_last) std::rotate(r.memory.begin() + 1, r.memory.begin() + 2, r.memory.end());
  Step step{.name = node.name, .kernel = "tenon:resample"};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) {
      step.places.push_back({});
      continue;
    }
    const ElementType type = graph.values[node.inputs[i]].type;
    View view = i == 0 ? lowering.read(node.inputs[i], type, strides_of(r.from))
                       : lowering.read_row_major(node.inputs[i], type);
    step.bytes += static_cast<double>(view.bytes());
    step.places.push_back(place_of(view));
  }
  View made = lowering.make(node.outputs[0], ElementType::kF32, strides_of(r.to));
  step.bytes += static_cast<double>(made.bytes());
  step.places.push_back(place_of(made));
  step.places.push_back({lowering.scratch(2 * room * 4 + tables), 0});
  step.kernel_function = [r](const kernels::Context& context, void* const* pointers) {
    return run(r, context, pointers);
  };
  lowering.add_step(std::move(step));
}

std::string refuse_nearest(const Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  if (std::string why = why_not_taken(resample_of(graph, node).rule); !why.empty()) return why;
  const bool is_read_as_it_lies = is_row_major(lowering.view(node.inputs[0])) ||
                                  graph.values[node.inputs[0]].type != ElementType::kF32;
  return is_read_as_it_lies ? "" : "the channels lie side by side";
}

void lower_nearest(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Resample r = resample_of(graph, graph.nodes[index]);
  lower_axis_map(
      lowering, index, "tenon:nearest", kNoFiller, [r](const AxisTables& tables) -> const char* {
        Axes axes;
        if (const char* why = read_axes(r, tables.parameters, axes)) return why;
        int64_t* entry = tables.entries;
        for (size_t axis = 0; axis < r.from.size(); ++axis)
          for (int64_t i = 0; i < axes[axis].out; ++i)
            *entry++ = axes[axis].is_same(r.rule) ? i : nearest_tap(r.rule, axes[axis], i);
        return nullptr;
      });
}

}  // namespace tenon::onednn

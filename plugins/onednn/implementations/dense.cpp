// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "product.hpp"

namespace tenon::onednn {

namespace {

thread_local std::array<char, 96> outside_;

// Whether nothing but this node's first input lies where its first output, made like it, may lie.
bool may_replace_first(const Lowering& lowering, int index, const std::vector<View>& inputs) {
  const Value& value = lowering.graph().values[lowering.graph().nodes[index].outputs[0]];
  const View like{.type = value.type, .dims = value.dims, .strides = row_major_strides(value.dims)};
  std::vector<Place> others;
  for (size_t i = 1; i < inputs.size(); ++i)
    others.push_back(place_of(inputs[i]));
  return lowering.may_overwrite(inputs[0], like, index, others);
}

bool moves_bytes(const Lowering& lowering, int value) {
  const View& view = lowering.view(value);
  return holds_quantized(view) && view.channels == nullptr;
}

}  // namespace

void lower_dense(Lowering& lowering,
                 int index,
                 const char* kernel,
                 KernelFunction function,
                 int64_t scratch_bytes,
                 FirstOutput first_output) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  Step step{.name = node.name, .kernel = kernel};
  std::vector<View> inputs;
  for (int input : node.inputs) {
    if (input == kNone) {
      step.places.push_back({});
      continue;
    }
    const bool is_moved =
        first_output == FirstOutput::kAsStored && inputs.empty() && moves_bytes(lowering, input);
    const View view = is_moved
                          ? lowering.read_stored(input, row_major_strides(graph.values[input].dims),
                                                 lowering.view(input).type)
                          : lowering.read_row_major(input, graph.values[input].type);
    step.bytes += static_cast<double>(view.bytes());
    step.places.push_back(place_of(view));
    inputs.push_back(view);
  }
  const bool replaces =
      first_output == FirstOutput::kOverFirstInput && may_replace_first(lowering, index, inputs);
  if (replaces) lowering.set_view(node.outputs[0], inputs[0]);
  for (int output : node.outputs) {
    if (output == kNone) {
      step.places.push_back({});
      continue;
    }
    const Value& value = graph.values[output];
    const bool is_there = replaces && output == node.outputs[0];
    const bool is_moved = first_output == FirstOutput::kAsStored && inputs[0].is_quantized();
    View made = is_there ? inputs[0]
                         : lowering.make(output, is_moved ? inputs[0].type : value.type,
                                         row_major_strides(value.dims),
                                         is_moved ? inputs[0].quant : kernels::Quant{});
    step.bytes += static_cast<double>(made.bytes());
    step.places.push_back(place_of(made));
  }
  if (scratch_bytes > 0) step.places.push_back({lowering.scratch(scratch_bytes), 0});
  step.kernel_function = std::move(function);
  lowering.add_step(std::move(step));
}

ElementType moved_type(const Lowering& lowering, int value) {
  return moves_bytes(lowering, value) ? lowering.view(value).type
                                      : lowering.graph().values[value].type;
}

bool resolve_unusual_index(int64_t* index, int64_t extent) {
  const int64_t given = *index;
  if (given < 0) *index += extent;
  if (*index >= 0 && *index < extent) return true;
  std::snprintf(outside_.data(), outside_.size(), "indices: expected %lld..%lld, got %lld",
                static_cast<long long>(-extent), static_cast<long long>(extent - 1),
                static_cast<long long>(given));
  return false;
}

const char* outside_text() {
  return outside_.data();
}

int64_t row_start(const Dims& index_dims, const Dims& strides, int64_t axis, int64_t row) {
  int64_t at = 0;
  for (size_t i = index_dims.size() - 1; i-- > 0; row /= index_dims[i])
    if (static_cast<int64_t>(i) != axis) at += row % index_dims[i] * strides[i];
  return at;
}

AxisSplit split_at(const Dims& dims, int64_t axis) {
  AxisSplit split;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    int64_t& extent = i < axis ? split.outer : (i > axis ? split.inner : split.k);
    extent *= dims[static_cast<size_t>(i)];
  }
  return split;
}

View read_dense(Lowering& lowering, int value) {
  const ElementType type = lowering.graph().values[value].type;
  return kernels::is_narrow_type(type) ? lowering.view(value)
                                       : lowering.read_row_major(value, type);
}

bool is_integer_parameter(const Graph& graph, const Node& node, size_t input) {
  if (node.input(input) == kNone) return true;
  ElementType type = graph.values[node.inputs[input]].type;
  return type == ElementType::kI64 || type == ElementType::kI32;
}

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
// Shapes as numbers, and tensors of a stated shape: Shape, Size, ConstantOfShape.
#include <algorithm>
#include <array>
#include <cstring>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

// A step that reads nothing: `numbers` are known when it is compiled.
void lower_numbers(Lowering& lowering, int index, const Dims& numbers) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  View made = lowering.make(node.outputs[0], value.type, row_major_strides(value.dims));
  Step step{.name = node.name, .kernel = "tenon:shape", .always_succeeds = true};
  step.places.push_back(place_of(made));
  step.bytes = static_cast<double>(made.bytes());
  step.kernel_function = [numbers](const kernels::Context&, void* const* pointers) -> const char* {
    std::copy(numbers.begin(), numbers.end(), static_cast<int64_t*>(pointers[0]));
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

// As a slice is: negative ones count from the end, and all are cut to what there is.
size_t axis_of(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  return static_cast<size_t>(std::clamp<int64_t>(axis < 0 ? axis + n : axis, 0, n));
}

// The number that a ConstantOfShape repeats, as its bytes.
std::array<char, 8> repeated_bytes(const Node& node) {
  std::array<char, 8> out{};
  const tn_any any = node.source.attr("value");
  if (any.tag != TN_ANY_TENSOR) return out;
  const Tensor tensor = Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(any.v.p)));
  const DLTensor t = tensor.dl();
  std::memcpy(out.data(), data_of<const char>(t), bytes_of(dtype_of(t), 1));
  return out;
}

}  // namespace

std::string refuse_shape(const Graph&, const Node&) {
  return {};
}

void lower_shape(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const size_t first = axis_of(node.integer("start", 0), dims.size());
  const size_t end = axis_of(node.integer("end", static_cast<int64_t>(dims.size())), dims.size());
  Dims numbers;
  for (size_t axis = first; axis < end; ++axis)
    numbers.push_back(dims[axis]);
  lower_numbers(lowering, index, numbers);
}

std::string refuse_size(const Graph&, const Node&) {
  return {};
}

void lower_size(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  lower_numbers(lowering, index, {graph.values[graph.nodes[index].inputs[0]].count()});
}

std::string refuse_constant_of_shape(const Graph& graph, const Node& node) {
  const Value& stated = graph.values[node.inputs[0]];
  const Value& made = graph.values[node.outputs[0]];
  if (stated.type != ElementType::kI64) return "only a shape of i64";
  if (stated.count() != static_cast<int64_t>(made.dims.size())) return "a shape of another rank";
  // No step runs for results without elements, so nothing would look at the numbers that say so.
  const bool is_open = stated.data == nullptr && made.count() == 0;
  return is_open ? "the result has no elements, as data say" : "";
}

void lower_constant_of_shape(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const int64_t bytes = kernels::element_bytes(value.type), n = value.count();
  lower_dense(lowering, index, "tenon:constant_of_shape",
              [dims = value.dims, number = repeated_bytes(node), bytes, n](
                  const kernels::Context& context, void* const* pointers) -> const char* {
                const auto* stated = static_cast<const int64_t*>(pointers[0]);
                if (!std::equal(dims.begin(), dims.end(), stated))
                  return "the shape is not the one that was compiled";
                char* out = static_cast<char*>(pointers[1]);
                kernels::parallel_for(
                    context.parallel, n, kernels::grain_rows(bytes), [&](int64_t lo, int64_t hi) {
                      for (int64_t i = lo; i < hi; ++i)
                        std::memcpy(out + i * bytes, number.data(), static_cast<size_t>(bytes));
                    });
                return nullptr;
              });
}

}  // namespace tenon::onednn

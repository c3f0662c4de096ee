// SPDX-License-Identifier: Apache-2.0
#include "graph_builder.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::onednn::test {

template <class T>
const T* GraphBuilder::keep(std::vector<T> values) {
  auto owned = std::make_shared<std::vector<T>>(std::move(values));
  kept_.push_back(owned);
  return owned->data();
}

int GraphBuilder::input(const std::string& name, const Dims& dims, ElementType type) {
  return graph.add_input(name, type, dims);
}

int GraphBuilder::constant(const Dims& dims, std::vector<float> values) {
  return graph.add_constant(fresh("c"), ElementType::kF32, dims, keep(std::move(values)));
}

int GraphBuilder::constant_bytes(ElementType type,
                                 const Dims& dims,
                                 const std::vector<int32_t>& values) {
  if (type == ElementType::kI32) return graph.add_constant(fresh("c"), type, dims, keep(values));
  std::vector<uint8_t> bytes(values.begin(), values.end());
  return graph.add_constant(fresh("c"), type, dims, keep(std::move(bytes)));
}

int GraphBuilder::constant_i64(std::vector<int64_t> values) {
  Dims dims = {static_cast<int64_t>(values.size())};
  return graph.add_constant(fresh("c"), ElementType::kI64, dims, keep(std::move(values)));
}

int GraphBuilder::random_constant(const Dims& dims, float scale) {
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (float& value : values)
    value = normal(random_);
  return constant(dims, std::move(values));
}

int GraphBuilder::node(const std::string& op,
                       std::vector<int> inputs,
                       const Dims& dims,
                       std::vector<Attribute> attributes,
                       std::vector<tn_expr_node> expr,
                       ElementType type) {
  Value value;
  value.name = fresh(op);
  value.type = type;
  value.dims = dims;
  Node made;
  made.op = op;
  made.name = value.name;
  made.inputs = std::move(inputs);
  made.attributes = std::move(attributes);
  made.expr = std::move(expr);
  made.outputs = {graph.add_value(std::move(value))};
  int result = made.outputs[0];
  graph.add_node(std::move(made));
  return result;
}

int GraphBuilder::weights(const Dims& dims, int axis, float deviation) {
  if (!quantized_) return random_constant(dims, deviation);
  std::uniform_int_distribution<int> uniform(-127, 127);
  std::vector<int32_t> stored(static_cast<size_t>(element_count(dims)));
  for (int32_t& value : stored)
    value = uniform(random_);
  std::vector<float> scales(static_cast<size_t>(dims[axis]));
  std::uniform_real_distribution<float> spread(0.5F, 1.0F);
  for (float& scale : scales)
    scale = deviation * spread(random_) / 73.0F;  // 127 / sqrt(3)
  int q = constant_bytes(ElementType::kS8, dims, stored);
  int s = constant({dims[axis]}, scales);
  int z = constant_bytes(ElementType::kS8, {dims[axis]}, std::vector<int32_t>(scales.size(), 0));
  return node("DequantizeLinear", {q, s, z}, dims, {{"axis", int64_t{axis}}});
}

int GraphBuilder::conv(
    int x, int64_t channels, int64_t kernel, int64_t stride, int64_t groups, bool bias) {
  Dims src = dims_of(x);
  size_t n_spatial = src.size() - 2;
  Dims w = {channels, src[1] / groups};
  w.resize(src.size(), kernel);
  Dims dst = {src[0], channels};
  int64_t pad = kernel / 2;
  for (size_t i = 0; i < n_spatial; ++i)
    dst.push_back((src[i + 2] + 2 * pad - kernel) / stride + 1);
  float fan = static_cast<float>(element_count(w) / channels);
  std::vector<int> inputs = {x, weights(w, 0, std::sqrt(2.0F / fan))};
  if (bias) inputs.push_back(random_constant({channels}, 0.1F));
  return node("Conv", inputs, dst,
              {{"strides", Dims(n_spatial, stride)},
               {"pads", Dims(2 * n_spatial, pad)},
               {"group", groups}});
}

int GraphBuilder::linear(int x, int64_t columns) {
  Dims dims = dims_of(x);
  int64_t rows = dims.back();
  dims.back() = columns;
  int w = weights({rows, columns}, 1, std::sqrt(1.0F / static_cast<float>(rows)));
  return node("MatMul", {x, w}, dims);
}

int GraphBuilder::relu(int x) {
  return node(
      "Relu", {x}, dims_of(x), {},
      {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_CONST, 0, 0, 0, 0}, {TN_EXPR_MAX, 0, 1, 0, 0}});
}

int GraphBuilder::add(int a, int b) {
  return node(
      "Add", {a, b}, dims_of(a), {},
      {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_INPUT, 1, 0, 0, 0}, {TN_EXPR_ADD, 0, 1, 0, 0}});
}

int GraphBuilder::mul(int a, int b) {
  return node(
      "Mul", {a, b}, dims_of(a), {},
      {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_INPUT, 1, 0, 0, 0}, {TN_EXPR_MUL, 0, 1, 0, 0}});
}

int GraphBuilder::max_pool(int x, int64_t kernel, int64_t stride, int64_t pad) {
  Dims src = dims_of(x);
  Dims dst = {src[0], src[1]};
  for (size_t i = 2; i < src.size(); ++i)
    dst.push_back((src[i] + 2 * pad - kernel) / stride + 1);
  size_t n = src.size() - 2;
  return node("MaxPool", {x}, dst,
              {{"kernel_shape", Dims(n, kernel)},
               {"strides", Dims(n, stride)},
               {"pads", Dims(2 * n, pad)}});
}

int GraphBuilder::global_average(int x) {
  Dims dst = {dims_of(x)[0], dims_of(x)[1]};
  dst.resize(dims_of(x).size(), 1);
  return node("GlobalAveragePool", {x}, dst);
}

int GraphBuilder::reshape(int x, const Dims& dims) {
  return node("Reshape", {x}, dims);
}

int GraphBuilder::stored(int x, float scale, int32_t zero_point, ElementType type) {
  if (!quantized_) return x;
  int s = constant({}, {scale});
  int z = constant_bytes(type, {}, {zero_point});
  int q = node("QuantizeLinear", {x, s, z}, dims_of(x), {}, {}, type);
  return node("DequantizeLinear", {q, s, z}, dims_of(x));
}

void GraphBuilder::output(int value) {
  graph.add_output(value);
  graph.finish();
}

void build_resnet50(GraphBuilder& b, int64_t batch) {
  int x = b.stored(b.input("x", {batch, 3, 224, 224}), 0.03F, 128);
  x = b.stored(b.relu(b.conv(x, 64, 7, 2)), 0.03F, 0);
  x = b.stored(b.max_pool(x, 3, 2, 1), 0.03F, 0);
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      int64_t width = int64_t{64} << stage;
      int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      int shortcut = x;
      if (block == 0) shortcut = b.stored(b.conv(x, width * 4, 1, stride), 0.06F, 128);
      int y = b.stored(b.relu(b.conv(x, width, 1, 1)), 0.03F, 0);
      y = b.stored(b.relu(b.conv(y, width, 3, stride)), 0.03F, 0);
      x = b.stored(b.relu(b.add(b.conv(y, width * 4, 1, 1), shortcut)), 0.06F, 0);
    }
  }
  x = b.stored(b.global_average(x), 0.06F, 0);
  x = b.reshape(x, {batch, 2048});
  b.output(b.linear(x, 1000));
}

}  // namespace tenon::onednn::test

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds graphs for tests of the oneDNN backend's inside: operators with random weights, and the
// same with QuantizeLinear and DequantizeLinear around each, as a quantizer would write them.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace tenon::onednn::test {

class GraphBuilder {
 public:
  explicit GraphBuilder(uint32_t seed, bool quantized = false)
      : quantized_(quantized), random_(seed) {}

  Graph graph;

  int input(const std::string& name, const Dims& dims, ElementType type = ElementType::kF32);
  int constant(const Dims& dims, std::vector<float> values);
  int constant_bytes(ElementType type, const Dims& dims, const std::vector<int32_t>& values);
  int constant_i64(std::vector<int64_t> values);
  int random_constant(const Dims& dims, float scale);

  int node(const std::string& op,
           std::vector<int> inputs,
           const Dims& dims,
           std::vector<Attribute> attributes = {},
           std::vector<tn_expr_node> expr = {},
           ElementType type = ElementType::kF32);
  int conv(int x,
           int64_t channels,
           int64_t kernel,
           int64_t stride,
           int64_t groups = 1,
           bool bias = true);
  int linear(int x, int64_t columns);
  int relu(int x);
  int add(int a, int b);
  int mul(int a, int b);
  int max_pool(int x, int64_t kernel, int64_t stride, int64_t pad);
  int global_average(int x);
  int reshape(int x, const Dims& dims);
  // QuantizeLinear and DequantizeLinear when the builder makes quantized graphs, else x.
  int stored(int x, float scale, int32_t zero_point, ElementType type = ElementType::kU8);
  int weights(const Dims& dims, int axis, float deviation);
  void output(int value);

 private:
  const Dims& dims_of(int value) const { return graph.values[value].dims; }
  std::string fresh(const std::string& stem) { return stem + std::to_string(n_names_++); }
  template <class T>
  const T* keep(std::vector<T> values);

  bool quantized_;
  std::mt19937 random_;
  int n_names_ = 0;
  std::vector<std::shared_ptr<const void>> kept_;
};

// ResNet-50 v1.5 with random weights, batch x 3 x 224 x 224 -> batch x 1000.
void build_resnet50(GraphBuilder& builder, int64_t batch);

}  // namespace tenon::onednn::test

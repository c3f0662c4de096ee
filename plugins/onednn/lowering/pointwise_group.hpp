// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of pointwise nodes that run as one pass over memory: the first node, and every later one
// of the same shape that reads the group or what it reads, and whose operands can all be read now.
// Values that something outside reads become results; QuantizeLinear is a result with a scale.
// Within the group nothing is stored.

#include <functional>
#include <map>
#include <vector>

#include "tenon/sdk/backend/program.hpp"

#include "lowering.hpp"

namespace tenon::onednn {

// Of a group, and of one node behind `rewrites/many_inputs`.
constexpr size_t kMostPointwiseInputs = 16;

class PointwiseGroup {
 public:
  PointwiseGroup(Lowering& lowering, int first);
  // Adds one step, gives views to what leaves the group and marks its nodes done.
  void lower();

 private:
  struct Result {
    int value;
    uint32_t program_node;
    kernels::Quant quant;
  };

  bool add(int node);
  bool add_producer(int value);
  bool add_quantize(int node);
  bool add_dequantize(int node);
  uint32_t operand(int value);
  bool shares_input(const Node& node) const;
  void grow(int first);
  void collect_results();
  Dims result_strides() const;
  bool is_inside(int node) const;
  bool reads_in_step(const View& state) const;
  // Where the inputs lie, but for one.
  std::vector<Place> places_but(size_t excepted) const;
  View place_result(const Result& result, const Dims& strides, std::vector<bool>& reused);

  Lowering& lowering_;
  const Graph& graph_;
  int first_;
  Dims dims_;
  std::vector<int> nodes_;
  std::vector<int> inputs_;                 // values read from memory
  std::map<int, uint32_t> program_of_;      // value -> program node, as a floating-point number
  std::map<int, kernels::Quant> quant_of_;  // QuantizeLinear results in the group
  backend::ProgramBuilder program_{true};
  std::vector<Result> results_;
};

// Of a step whose places are the plan's sources, then its targets.
KernelFunction pointwise_function(std::shared_ptr<const kernels::PointwisePlan> plan,
                                  size_t n_sources,
                                  size_t n_targets);

// Whether the node can be part of a group at all.
bool is_pointwise(const Graph& graph, const Node& node);
// Appends what the node computes to a program, where it is one; operand: of its input with this
// index. Returns the result's index.
uint32_t append_pointwise(backend::ProgramBuilder& program,
                          const Graph& graph,
                          const Node& node,
                          const std::function<uint32_t(uint32_t)>& operand);

}  // namespace tenon::onednn

// SPDX-License-Identifier: Apache-2.0
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "tenon/sdk/plan.hpp"

namespace tenon::decomposer {
namespace {

constexpr int kRounds = 15;

// Milliseconds of one run.
Result<double> timed(Plan& plan, const DLTensor& input, const Cancel& cancel) {
  auto start = std::chrono::steady_clock::now();
  TN_CHECK(plan.run({&input, 1}, cancel.raw()));
  std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  return passed.count();
}

// The layer alone, as a graph with one input whose open sizes are 1.
Result<OwnedGraph> alone(const Layer& layer, Type* input) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->extract(layer.node.graph, &layer.node.id, 1, &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  *input = graph.view().inputs()[0].type();
  if (layer.is_open || !input->ranked) return unsupported("the sizes of its input are not known");
  for (int64_t& dim : input->dims)
    if (dim <= 0) dim = 1;
  input->symbols.clear();
  TypeView type(*input);
  const tn_type* types[] = {type.get()};
  TN_CHECK(services.graph->bind(graph.get(), types, 1, &raw));
  return OwnedGraph::take(raw);
}

Result<OwnedGraph> replaced(const OwnedGraph& before,
                            const Layer& layer,
                            const std::vector<Step>& steps) {
  TN_TRY(graph, OwnedGraph::copy_of(before.get()));
  TN_TRY(edit, Edit::begin(graph.get()));
  TN_CHECK(replace(edit, edit.graph().node(0), layer, steps));
  TN_CHECK(edit.commit());
  return std::move(graph);
}

Result<Tensor> random_input(tn_ctx* ctx, const Type& type) {
  std::vector<double> numbers(static_cast<size_t>(type.elements()));
  services.random->normal(0, 1, 0, numbers.data(), numbers.size());
  if (type.dtype == TN_F64) return Tensor::of<double>(ctx, TN_F64, type.dims, numbers);
  std::vector<float> rounded(numbers.begin(), numbers.end());
  return Tensor::of<float>(ctx, TN_F32, type.dims, rounded);
}

}  // namespace

Result<Times> measure(tn_ctx* ctx,
                      const Layer& layer,
                      const std::vector<Step>& steps,
                      const std::vector<std::string>& backends,
                      const Cancel& cancel) {
  Type type;
  TN_TRY(before, alone(layer, &type));
  TN_TRY(after, replaced(before, layer, steps));
  TN_TRY(input, random_input(ctx, type));
  TN_TRY(old_layer, Plan::on_first(ctx, before.view(), {}, backends));
  Times times{std::numeric_limits<double>::max(), std::numeric_limits<double>::max(),
              old_layer.backend()};
  TN_TRY(new_layers, Plan::on_first(ctx, after.view(), {}, {times.backend}));
  DLTensor view = input.dl();
  // The first round takes memory and wakes threads up, and others compete at any time: the fastest
  // of rounds taken in turns says most.
  for (int round = 0; round <= kRounds; ++round) {
    TN_TRY(old_ms, timed(old_layer, view, cancel));
    TN_TRY(new_ms, timed(new_layers, view, cancel));
    if (round == 0) continue;
    times.before_ms = std::min(times.before_ms, old_ms);
    times.after_ms = std::min(times.after_ms, new_ms);
  }
  return times;
}

}  // namespace tenon::decomposer

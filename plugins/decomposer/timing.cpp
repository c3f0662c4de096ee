// SPDX-License-Identifier: Apache-2.0
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <nlohmann/json.hpp>

namespace tenon::decomposer {
namespace {

constexpr int kRounds = 15;

// One layer compiled, with its input and memory for its result.
class Timed {
 public:
  Timed() = default;
  Timed(const Timed&) = delete;
  ~Timed() {
    if (plan_) services.eval->release(plan_);
  }

  Status compile(tn_ctx* ctx, const tn_graph* graph, std::string_view backend) {
    ctx_ = ctx;
    std::string options = nlohmann::json{{"backend", backend}}.dump();
    return Status(services.eval->compile(ctx, graph, nullptr, 0, str(options), &plan_));
  }
  Result<double> run(const DLTensor& input, const Cancel& cancel) {
    const DLTensor* in[] = {&input};
    tn_outputs outputs{this, get};
    auto start = std::chrono::steady_clock::now();
    TN_CHECK(services.eval->run(plan_, in, 1, &outputs, cancel.raw()));
    std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    return passed.count();
  }

 private:
  static tn_status* get(void* self, uint64_t, const DLTensor* proto, DLTensor* out) {
    return guard([&]() -> Status {
      auto* timed = static_cast<Timed*>(self);
      if (!timed->result_) {
        TN_TRY(made, Tensor::zeros(timed->ctx_, dtype_of(*proto), shape_of(*proto)));
        timed->result_ = made;
      }
      *out = timed->result_.dl();
      return {};
    });
  }
  tn_ctx* ctx_ = nullptr;
  tn_plan* plan_ = nullptr;
  Tensor result_;
};

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
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(before.get(), &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(graph.get()));
  TN_CHECK(replace(edit, edit.graph().node(0), layer, steps));
  TN_CHECK(edit.commit());
  return graph;
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
  Timed old_layer, new_layers;
  Times times{std::numeric_limits<double>::max(), std::numeric_limits<double>::max(), ""};
  Status last = unsupported("no backend is named");
  for (const std::string& backend : backends) {
    last = old_layer.compile(ctx, before.get(), backend);
    if (last.ok()) times.backend = backend;
    if (last.ok() || (last.code() != TN_NOT_FOUND && last.code() != TN_UNAVAILABLE)) break;
  }
  TN_CHECK(std::move(last));
  TN_CHECK(new_layers.compile(ctx, after.get(), times.backend));
  DLTensor view = input.dl();
  // The first round takes memory and wakes threads up, and others compete at any time: the fastest
  // of rounds taken in turns says most.
  for (int round = 0; round <= kRounds; ++round) {
    TN_TRY(old_ms, old_layer.run(view, cancel));
    TN_TRY(new_ms, new_layers.run(view, cancel));
    if (round == 0) continue;
    times.before_ms = std::min(times.before_ms, old_ms);
    times.after_ms = std::min(times.after_ms, new_ms);
  }
  return times;
}

}  // namespace tenon::decomposer

// SPDX-License-Identifier: Apache-2.0
// Steady state allocates nothing of ours: operator new and malloc are counted over 100 runs. oneDNN
// itself allocates in dnnl_primitive_execute, so plans with primitives are compared with the same
// primitives called bare.

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"

namespace {
bool is_counting = false;
int64_t n_allocations = 0;
}  // namespace

// glibc's names for what these replace; operator new calls malloc.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* malloc(size_t bytes) {
  n_allocations += is_counting;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  n_allocations += is_counting;
  return __libc_calloc(count, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  n_allocations += is_counting;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  n_allocations += is_counting;
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? 12 : 0;
}
}

namespace tenon::onednn::test {
namespace {

constexpr int kRuns = 100;

template <class F>
int64_t allocations_of(const F& f) {
  n_allocations = 0;
  is_counting = true;
  for (int i = 0; i < kRuns; ++i)
    f();
  is_counting = false;
  return n_allocations;
}

// An executable with memory for one run after another.
class Steady {
 public:
  explicit Steady(const Graph& graph) : exe_(graph, {.threads = 1}, store_) {
    for (int input : graph.inputs)
      inputs_.push_back(memory(graph.values[input].bytes()));
    for (int output : graph.outputs)
      outputs_.push_back(memory(graph.values[output].bytes()));
    workspace_ = memory(exe_.workspace_bytes());
    run();
  }

  void run() {
    RunRequest request{.inputs = {const_cast<const void* const*>(inputs_.data()), inputs_.size()},
                       .outputs = outputs_,
                       .workspace = workspace_};
    const char* error = exe_.run(request);
    if (error != nullptr) std::abort();
  }

  // The plan's primitives over memory of their own.
  int64_t bare_allocations() {
    dnnl::stream stream(store_.engine());
    struct Call {
      const dnnl::primitive* primitive;
      std::vector<dnnl::memory> memories;
      std::vector<dnnl_exec_arg_t> arguments;
    };
    std::vector<Call> calls;
    for (const Step& step : exe_.plan().steps) {
      if (!step.primitive) continue;
      Call& call = calls.emplace_back(Call{&step.primitive, {}, {}});
      for (const Argument& argument : step.arguments) {
        int64_t bytes = static_cast<int64_t>(argument.desc.get_size());
        call.memories.emplace_back(argument.desc, store_.engine(), memory(bytes));
        call.arguments.push_back({argument.id, call.memories.back().get()});
      }
    }
    auto all = [&] {
      for (Call& call : calls) {
        dnnl_primitive_execute(call.primitive->get(), stream.get(),
                               static_cast<int>(call.arguments.size()), call.arguments.data());
      }
    };
    all();
    return allocations_of(all);
  }

  size_t n_steps() const { return exe_.plan().steps.size(); }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const Step& step : exe_.plan().steps)
      names.push_back(step.kernel);
    return names;
  }

 private:
  void* memory(int64_t bytes) {
    kept_.push_back(aligned_bytes(bytes));
    std::memset(kept_.back().get(), 0, static_cast<size_t>(bytes));
    return kept_.back().get();
  }

  WeightStore store_;
  Executable exe_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<void*> inputs_, outputs_;
  void* workspace_ = nullptr;
};

TEST(Allocation, TheCounterCounts) {
  std::shared_ptr<int> kept;

  EXPECT_EQ(allocations_of([&] { kept.reset(new int(5)); }), 2 * kRuns);  // and its count
}

TEST(Allocation, OurOwnStepsAllocateNothing) {
  GraphBuilder b(5);
  int x = b.input("x", {4, 6, 64});
  int y = b.node("Softmax", {b.relu(b.add(x, x))}, {4, 6, 64});
  y = b.node("LayerNormalization", {y, b.random_constant({64}, 1.0F)}, {4, 6, 64});
  y = b.node("ReduceSum", {y, b.constant_i64({1})}, {4, 1, 64});
  y = b.node("CumSum", {y, b.constant_i64({2})}, {4, 1, 64});
  y = b.node("Tile", {y, b.constant_i64({1, 3, 1})}, {4, 3, 64});
  b.output(b.node("MatMul", {y, b.random_constant({64, 40}, 1.0F)}, {4, 3, 40}));
  b.graph.finish();
  Steady steady(b.graph);
  if (best_level() >= kernels::Level::kAvx2) {
    ASSERT_EQ(steady.kernels().back(), "tenon:float_product");
  }

  EXPECT_GE(steady.n_steps(), 5U);
  EXPECT_EQ(allocations_of([&] { steady.run(); }), 0);
}

TEST(Allocation, PlansOfPrimitivesAllocateNoMoreThanThePrimitives) {
  GraphBuilder b(5);
  int x = b.input("x", {2, 8, 12, 12});
  int y = b.relu(b.conv(x, 16, 3, 1));
  y = b.max_pool(b.relu(b.add(b.conv(y, 16, 3, 1), y)), 3, 2, 1);
  b.output(b.linear(b.reshape(b.global_average(y), {2, 16}), 10));
  b.graph.finish();
  Steady steady(b.graph);

  EXPECT_LE(allocations_of([&] { steady.run(); }), steady.bare_allocations());
}

}  // namespace
}  // namespace tenon::onednn::test

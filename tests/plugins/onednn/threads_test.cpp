// SPDX-License-Identifier: Apache-2.0
// One plan, many threads: what each gets is what it gets alone.
#include <thread>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

// A convolution, a product, a pointwise group and a softmax, for a batch that changes.
constexpr std::string_view kModel = R"(graph {
  input %x: f32[batch, 4, 6, 6]
  input %w: f32[8, 4, 3, 3]
  input %v: f32[128, 16]
  constant %flat: i64[2] = [0, -1]
  constant %one: f32[] = [1]
  %c: f32[batch, 8, 4, 4] = Conv(%x, %w) @conv
  %r: f32[batch, 8, 4, 4] = Relu(%c) @relu
  %f: f32[batch, 128] = Reshape(%r, %flat) @flat
  %m: f32[batch, 16] = MatMul(%f, %v) @matmul
  %s: f32[batch, 16] = Sigmoid(%m) @sigmoid
  %t: f32[batch, 16] = Add(%s, %one) @add
  %y: f32[batch, 16] = Softmax(%t) @softmax
  output y = %y
}
)";

class OneDnnThreads : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    weights_.push_back(filled({8, 4, 3, 3}, 0.01f));
    weights_.push_back(filled({128, 16}, 0.003f));
    tn_graph* graph = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->parse(ctx_, str(kModel), &graph))), "");
    Status compiled(tenon_compile(
        session_, graph, str(R"({"backend": "onednn", "threads": 2, "plan_cache": 2})"), &plan_));
    EXPECT_EQ(text_of(std::move(compiled)), "");
    services.graph->release(graph);
  }
  ~OneDnnThreads() override { services.eval->release(plan_); }

  Tensor filled(std::vector<int64_t> shape, float step) {
    auto tensor = *Tensor::zeros(ctx_, TN_F32, shape);
    auto* data = tensor.data<float>();
    for (int64_t i = 0; i < element_count(tensor.dl()); ++i)
      data[i] = static_cast<float>(i % 17 - 8) * step;
    return tensor;
  }
  // The answer for a batch, or the failure's text and no numbers.
  std::pair<std::string, std::vector<float>> answer(int64_t batch) {
    Tensor x = filled({batch, 4, 6, 6}, 0.1f * static_cast<float>(batch));
    std::vector<DLTensor> views{x.dl(), weights_[0].dl(), weights_[1].dl()};
    const DLTensor* inputs[] = {&views[0], &views[1], &views[2]};
    Collected results(ctx_);
    Status status(tenon_run(plan_, inputs, 3, &results.raw, nullptr));
    if (!status.ok()) return {text_of(std::move(status)), {}};
    return {"", results.numbers<float>(0)};
  }

  tn_plan* plan_ = nullptr;
  std::vector<Tensor> weights_;
};

// More batch sizes than the plan keeps compiled: threads compile, evict and run at the same time.
TEST_F(OneDnnThreads, GiveWhatOneGives) {
  std::vector<std::vector<float>> alone;
  for (int64_t batch = 1; batch <= 3; ++batch) {
    auto [failure, numbers] = answer(batch);
    ASSERT_EQ(failure, "");
    alone.push_back(numbers);
  }
  std::vector<std::string> failures(4);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 12; ++i) {
        const size_t which = (t + i) % alone.size();
        auto [failure, numbers] = answer(static_cast<int64_t>(which) + 1);
        if (!failure.empty()) failures[t] = failure;
        wrong[t] += numbers != alone[which];
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(failures, std::vector<std::string>(4));
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace tenon::test

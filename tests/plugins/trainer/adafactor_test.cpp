// SPDX-License-Identifier: Apache-2.0
// trainer.adafactor: weights of more than two axes as matrices, and parameters of 16 bits.
#include <cmath>

#include <gmock/gmock.h>

#include "tenon/sdk/number.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class Adafactor : public PluginTest {
 protected:
  // Parameters with gradients 2 x, stepped at rate 0.1.
  void start(const std::map<std::string, Type>& parameters, const json& options) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    OwnedGraph graph = OwnedGraph::take(raw);
    Status built = [&]() -> Status {
      TN_TRY(edit, Edit::begin(raw));
      for (const auto& [name, type] : parameters) {
        TN_TRY(x, edit.input(name, type));
        TN_TRY(gradient, edit.op("Add", {x, x}));
        TN_CHECK(edit.output(cat("grad/", name), gradient));
      }
      return edit.commit();
    }();
    ASSERT_EQ(text_of(built), "");
    auto optimizer = make("tenon.optimizer/1", "trainer.adafactor", options);
    ASSERT_TRUE(optimizer.ok()) << text_of(optimizer.status());
    tn_options* given = nullptr;
    ASSERT_EQ(text_of(Status(services.options->create(ctx_, &given))), "");
    tn_any lent{TN_ANY_COMPONENT, 0, 1, {.p = optimizer->raw()}};
    EXPECT_EQ(text_of(Status(services.options->set(given, str("optimizer"), lent))), "");
    tn_graph* made = nullptr;
    Status applied(
        tenon_apply(session_, graph.get(), str("trainer.step"), given, nullptr, nullptr, &made));
    services.options->release(given);
    ASSERT_EQ(text_of(applied), "");
    step_ = OwnedGraph::take(made);
    tn_plan* plan = nullptr;
    ASSERT_EQ(text_of(Status(
                  tenon_compile(session_, step_.get(), str(R"({"backend": "reference"})"), &plan))),
              "");
    plan_.reset(plan);
  }
  void set(const std::string& name, const Tensor& numbers) {
    DLTensor view = numbers.dl();
    ASSERT_EQ(text_of(Status(services.eval->state_set(plan_.get(), str(name), &view))), "");
  }
  void run() {
    const float rate = 0.1f;
    DenseView view(TN_F32, std::vector<int64_t>{}, &rate);
    const DLTensor* inputs[] = {view.get()};
    Collected results(ctx_);
    ASSERT_EQ(text_of(Status(tenon_run(plan_.get(), inputs, 1, &results.raw, nullptr))), "");
  }
  std::vector<double> state(const std::string& name) {
    Type type = step_.view().find(name).type();
    Tensor now = *Tensor::zeros(ctx_, type.dtype, type.dims);
    DLTensor view = now.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan_.get(), str(name), &view))), "");
    return *numbers_as<double>(view);
  }
  void TearDown() override { plan_.reset(); }

  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  OwnedGraph step_;
  std::unique_ptr<tn_plan, Release> plan_;
};

TEST_F(Adafactor, FlattenMakesMatricesOfWeights) {
  start({{"folded", Type(TN_F32, {2, 3, 2})}, {"flat", Type(TN_F32, {2, 6})}}, {{"flatten", true}});
  std::vector<float> x;
  for (int i = 0; i < 12; ++i)
    x.push_back(std::sin(static_cast<float>(3 * i + 1)));
  for (auto [name, dims] : {std::pair{"folded", std::vector<int64_t>{2, 3, 2}},
                            std::pair{"flat", std::vector<int64_t>{2, 6}}})
    set(name, *Tensor::of<float>(ctx_, TN_F32, dims, x));
  for (int i = 0; i < 3; ++i)
    run();
  EXPECT_EQ(step_.view().find("folded/row_var").type().dims, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(step_.view().find("folded/col_var").type().dims, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(state("folded"), state("flat"));
  EXPECT_NE(state("flat")[0], static_cast<double>(x[0]));
}

// A row whose gradients are 0: the smallest second moment keeps the quotient a number.
TEST_F(Adafactor, ParametersOf16BitsStayNumbers) {
  for (uint32_t dtype : {TN_F16, TN_BF16}) {
    start({{"w", Type(dtype, {2, 2})}, {"v", Type(dtype, {2})}}, json::object());
    auto bits = [&](bool is_one) -> uint16_t {
      return static_cast<uint16_t>(!is_one ? 0 : dtype == TN_F16 ? 0x3c00 : 0x3f80);
    };
    const std::vector<uint16_t> w{bits(true), bits(true), 0, 0}, v{bits(true), 0};
    set("w", *Tensor::of<uint16_t>(ctx_, dtype, std::vector<int64_t>{2, 2}, w));
    set("v", *Tensor::of<uint16_t>(ctx_, dtype, std::vector<int64_t>{2}, v));
    run();
    const std::vector<double> matrix = state("w"), vector = state("v");
    EXPECT_LT(matrix[0], 1);
    EXPECT_GT(matrix[0], 0.5);
    EXPECT_EQ(matrix[2], 0);
    EXPECT_LT(vector[0], 1);
    EXPECT_EQ(vector[1], 0);
  }
}

}  // namespace
}  // namespace tenon::test

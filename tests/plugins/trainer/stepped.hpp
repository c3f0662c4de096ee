// SPDX-License-Identifier: Apache-2.0
#pragma once
// A plan that updates parameters by one optimizer, from a graph that ends in grad/NAME of each.
#include <gmock/gmock.h>

#include "tenon/sdk/number.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

class Stepped : public PluginTest {
 protected:
  void step_by(const OwnedGraph& graph, const std::string& optimizer_id, const json& options) {
    auto optimizer = make("tenon.optimizer/1", optimizer_id, options);
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
  // The rate is of the type of the parameters' own arithmetic.
  template <class T>
  void run_at(uint32_t dtype, T rate) {
    DenseView view(dtype, std::vector<int64_t>{}, &rate);
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

}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// Optimizers over several steps of several tensors, against tests/golden/optimizers.json.
#include <set>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::Pointwise;
using Numbers = std::vector<double>;

class Optimizers : public PluginTest {
 protected:
  Optimizers() : golden_(golden("optimizers.json")) {}

  // Outputs grad/NAME = curve * NAME for each tensor of the golden file.
  OwnedGraph gradients() {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    OwnedGraph graph = OwnedGraph::take(raw);
    Status built = [&]() -> Status {
      TN_TRY(edit, Edit::begin(raw));
      for (const auto& [name, dims] : golden_["shapes"].items()) {
        std::vector<int64_t> shape = dims;
        TN_TRY(x, edit.input(name, Type(TN_F64, shape)));
        TN_TRY(curve, edit.constant<double>(TN_F64, shape, golden_["curves"][name].get<Numbers>()));
        TN_TRY(gradient, edit.op("Mul", {curve, x}));
        TN_CHECK(edit.output(cat("grad/", name), gradient));
      }
      return edit.commit();
    }();
    EXPECT_EQ(text_of(built), "");
    return graph;
  }
  void start(const json& one) {
    OwnedGraph graph = gradients();
    auto optimizer = make("tenon.optimizer/1", one["optimizer"].get<std::string>(), one["options"]);
    ASSERT_TRUE(optimizer.ok()) << text_of(optimizer.status());
    tn_options* options = nullptr;
    ASSERT_EQ(text_of(Status(services.options->create(ctx_, &options))), "");
    tn_any given{TN_ANY_COMPONENT, 0, 1, {.p = optimizer->raw()}};
    EXPECT_EQ(text_of(Status(services.options->set(options, str("optimizer"), given))), "");
    tn_graph* made = nullptr;
    Status applied(
        tenon_apply(session_, graph.get(), str("trainer.step"), options, nullptr, nullptr, &made));
    services.options->release(options);
    ASSERT_EQ(text_of(applied), "");
    step_ = OwnedGraph::take(made);
    tn_plan* plan = nullptr;
    ASSERT_EQ(text_of(Status(
                  tenon_compile(session_, step_.get(), str(R"({"backend": "reference"})"), &plan))),
              "");
    plan_.reset(plan);
    for (const auto& [name, dims] : golden_["shapes"].items()) {
      Tensor first = *Tensor::of<double>(ctx_, TN_F64, dims.get<std::vector<int64_t>>(),
                                         golden_["start"][name].get<Numbers>());
      DLTensor view = first.dl();
      EXPECT_EQ(text_of(Status(services.eval->state_set(plan, str(name), &view))), "");
    }
  }
  void run(double rate) {
    DenseView view(TN_F64, {}, &rate);
    const DLTensor* inputs[] = {view.get()};
    Collected results(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan_.get(), inputs, 1, &results.raw, nullptr))), "");
  }
  Numbers state(const std::string& name) {
    Value of = step_.view().find(name);
    Tensor now = *Tensor::zeros(ctx_, TN_F64, of.type().dims);
    DLTensor view = now.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan_.get(), str(name), &view))), "");
    const double* data = now.data<double>();
    return {data, data + element_count(view)};
  }
  std::set<std::string> states() {
    std::set<std::string> out;
    for (Value value : step_.view().list(TN_LIST_STATES))
      out.emplace(value.name());
    return out;
  }

  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  json golden_;
  OwnedGraph step_;
  std::unique_ptr<tn_plan, Release> plan_;
};

TEST_F(Optimizers, FollowTheirGoldenTraces) {
  for (const json& one : golden_["cases"]) {
    SCOPED_TRACE(cat(one["optimizer"].get<std::string>(), one["options"].dump()));
    ASSERT_NO_FATAL_FAILURE(start(one));
    for (size_t t = 0; t < one["steps"].size(); ++t) {
      run(golden_["rates"][t].get<double>());
      for (const auto& [name, wanted] : one["steps"][t].items())
        EXPECT_THAT(state(name), Pointwise(DoubleNear(1e-12), wanted.get<Numbers>()))
            << name << " after step " << t + 1;
    }
    std::set<std::string> known = states();
    for (const auto& [name, wanted] : one["states"].items()) {
      ASSERT_EQ(known.count(name), 1u) << "no state " << name;
      EXPECT_THAT(state(name), Pointwise(DoubleNear(1e-12), wanted.get<Numbers>())) << name;
      known.erase(name);
    }
    for (const auto& [name, dims] : golden_["shapes"].items())
      known.erase(name);
    std::string word = one["optimizer"].get<std::string>().substr(8);
    known.erase(cat(word, "/step"));
    EXPECT_THAT(known, testing::IsEmpty()) << "states that the golden file does not have";
  }
}

TEST_F(Optimizers, EachOfOursHasAGoldenTraceWithAndWithoutDecay) {
  std::map<std::string, std::set<bool>> traced;
  for (const json& one : golden_["cases"])
    traced[one["optimizer"]].insert(one["options"].value("weight_decay", 0.0) != 0);
  StringSink text;
  ASSERT_EQ(text_of(Status(services.component->list(ctx_, str("tenon.optimizer/1"), text.get()))),
            "");
  for (const json& one : json::parse(text.text)) {
    std::string id = one["id"];
    if (!id.starts_with("trainer.")) continue;
    EXPECT_EQ(traced[id].size(), 2u) << id;
  }
}

TEST_F(Optimizers, ATensorOfZerosIsNotStuckAtATrustRatioOfZero) {
  golden_["start"]["w"] = Numbers(6, 0.0);
  golden_["start"]["k"] = Numbers(4, 0.0);
  for (const char* id : {"trainer.lamb", "trainer.lars"}) {
    SCOPED_TRACE(id);
    ASSERT_NO_FATAL_FAILURE(start({{"optimizer", id}, {"options", json::object()}}));
    run(0.5);
    run(0.5);
    EXPECT_THAT(state("w"), testing::Each(0.0));  // the gradient is zero here: no NaN of 0/0
    EXPECT_LT(state("b")[0], 0.75);
  }
}

TEST_F(Optimizers, BadOptionsAreNamed) {
  using testing::HasSubstr;
  auto refused = [&](const char* id, const json& options) {
    return refusal("tenon.optimizer/1", id, options);
  };
  EXPECT_THAT(refused("trainer.adam", {{"beta2", 1}}), HasSubstr("beta2"));
  EXPECT_THAT(refused("trainer.lamb", {{"epsilon", -1}}), HasSubstr("epsilon"));
  EXPECT_THAT(refused("trainer.lars", {{"trust", 0}}), HasSubstr("trust"));
  EXPECT_THAT(refused("trainer.lion", {{"beta1", 1}}), HasSubstr("beta1"));
  EXPECT_THAT(refused("trainer.rmsprop", {{"alpha", 2}}), HasSubstr("alpha"));
}

}  // namespace
}  // namespace tenon::test

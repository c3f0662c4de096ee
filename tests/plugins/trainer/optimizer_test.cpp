// SPDX-License-Identifier: Apache-2.0
// Optimizers over several steps of several tensors, against tests/golden/optimizers.json.
#include <set>

#include "stepped.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::Pointwise;
using Numbers = std::vector<double>;

class Optimizers : public Stepped {
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
    ASSERT_NO_FATAL_FAILURE(step_by(graph, one["optimizer"].get<std::string>(), one["options"]));
    for (const auto& [name, dims] : golden_["shapes"].items()) {
      Tensor first = *Tensor::of<double>(ctx_, TN_F64, dims.get<std::vector<int64_t>>(),
                                         golden_["start"][name].get<Numbers>());
      set(name, first);
    }
  }
  void run(double rate) { run_at(TN_F64, rate); }
  std::set<std::string> states() {
    std::set<std::string> out;
    for (Value value : step_.view().list(TN_LIST_STATES))
      out.emplace(value.name());
    return out;
  }

  json golden_;
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

// SPDX-License-Identifier: Apache-2.0
// Moments in 8 bits: the map of values, what a step keeps, and an update beside one in float32.
#include "blocks.hpp"

#include <bit>
#include <cmath>

#include "training_session.hpp"

namespace tenon::test {
namespace {

using trainer::Blocks;

// Figures of bitsandbytes' create_dynamic_map.
TEST(BlockValues, AreTheDynamicMap) {
  std::vector<float> with = Blocks::values(true), without = Blocks::values(false);
  ASSERT_EQ(with.size(), 256u);
  ASSERT_EQ(without.size(), 256u);
  EXPECT_TRUE(std::is_sorted(with.begin(), with.end()));
  EXPECT_TRUE(std::is_sorted(without.begin(), without.end()));
  EXPECT_FLOAT_EQ(with[0], -0.992968738f);
  EXPECT_EQ(with[127], 0);
  EXPECT_FLOAT_EQ(with[128], 5.5e-7f);
  EXPECT_FLOAT_EQ(with[129], 3.25e-6f);
  EXPECT_EQ(with[255], 1);
  EXPECT_FLOAT_EQ(without[1], 3.25e-7f);
  EXPECT_FLOAT_EQ(without[254], 0.9964844f);
}

// One step of a state that is set to what the step is given.
class BlockStates : public TrainingTest {
 protected:
  void keep(int64_t n, bool has_signs) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    graph_ = OwnedGraph::take(raw);
    Status built = [&]() -> Status {
      TN_TRY(edit, Edit::begin(raw));
      Builder b(edit);
      TN_TRY(x, edit.input("x", Type(TN_F32, {n})));
      TN_TRY(kept, Blocks::keep(b, "m", Type(TN_F32, {n}), has_signs));
      TN_CHECK(edit.output("before", kept.before));
      TN_CHECK(kept.close(x));
      TN_CHECK(b.status());
      return edit.commit();
    }();
    ASSERT_EQ(text_of(std::move(built)), "");
    tn_plan* plan = nullptr;
    ASSERT_EQ(text_of(Status(tenon_compile(session_, graph_.get(),
                                           str(R"({"backend": "reference"})"), &plan))),
              "");
    plan_.reset(plan);
  }
  std::vector<float> step(const std::vector<float>& x) {
    DenseView view(TN_F32, std::vector<int64_t>{static_cast<int64_t>(x.size())}, x.data());
    const DLTensor* inputs[] = {view.get()};
    Collected results(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan_.get(), inputs, 1, &results.raw, nullptr))), "");
    return results.numbers<float>(0);
  }
  void TearDown() override { plan_.reset(); }

  struct Release {
    void operator()(tn_plan* plan) const { services.eval->release(plan); }
  };
  OwnedGraph graph_;
  std::unique_ptr<tn_plan, Release> plan_;
};

// By looking at all values, which is not how the nodes find them.
std::vector<float> nearest_values(const std::vector<float>& x, bool has_signs) {
  std::vector<float> values = Blocks::values(has_signs), out;
  for (size_t begin = 0; begin < x.size(); begin += Blocks::kSize) {
    size_t end = std::min(x.size(), begin + Blocks::kSize);
    float largest = 0;
    for (size_t i = begin; i < end; ++i)
      largest = std::max(largest, std::abs(x[i]));
    for (size_t i = begin; i < end; ++i) {
      float share = largest > 0 ? x[i] / largest : 0, best = values[!has_signs && share > 0];
      for (float one : values) {
        const bool keeps_sign = one * share > 0 || (has_signs ? share >= 0 : share == 0);
        if (keeps_sign && std::abs(one - share) < std::abs(best - share)) best = one;
      }
      out.push_back(best * largest);
    }
  }
  return out;
}

TEST_F(BlockStates, KeepTheNearestValueOfEachNumber) {
  for (bool has_signs : {true, false}) {
    const size_t n = 5000;  // no multiple of a block
    keep(n, has_signs);
    std::vector<double> draws(n);
    services.random->normal(3, 0, 0, draws.data(), n);
    std::vector<float> x;
    for (size_t i = 0; i < n; ++i) {
      double one = draws[i] * std::pow(10.0, static_cast<double>(i % 9) - 8);
      x.push_back(static_cast<float>(i / 256 == 3 ? 0 : has_signs ? one : std::abs(one)));
    }
    EXPECT_THAT(step(x), testing::Each(0.0f)) << "states begin as zeros";
    std::vector<float> wanted = nearest_values(x, has_signs), got = step(x);
    ASSERT_EQ(got.size(), n);
    size_t differ = 0;
    for (size_t i = 0; i < n; ++i)
      differ +=
          got[i] != wanted[i] &&
          std::abs(std::abs(got[i] - x[i]) - std::abs(wanted[i] - x[i])) > 1e-6f * std::abs(x[i]);
    EXPECT_EQ(differ, 0u);
  }
}

// Adam divides by the root of its second moment.
TEST_F(BlockStates, ASecondMomentThatIsNotZeroDoesNotBecomeIt) {
  keep(4096, false);
  std::vector<float> x(4096, 1e-12f);
  x[0] = 1;
  x[9] = 0;
  step(x);
  std::vector<float> got = step(x);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[9], 0);
  EXPECT_FLOAT_EQ(got[10], 3.25e-7f) << "the least value of the block";
}

TEST_F(BlockStates, SmallTensorsStayAsTheyAre) {
  keep(4095, true);
  for (Value state : graph_.view().list(TN_LIST_STATES))
    EXPECT_EQ(state.dtype(), TN_F32);
  keep(4096, true);
  uint64_t bytes = 0;
  for (Value state : graph_.view().list(TN_LIST_STATES))
    bytes += bytes_of(state.dtype(), state.type().elements());
  EXPECT_EQ(bytes, 4096u + 4 * 16);
}

TEST_F(BlockStates, WhatIsNotFiniteHasAPlaceToo) {
  keep(4096, true);
  std::vector<float> x(4096, 1.0f);
  x[7] = std::numeric_limits<float>::infinity();
  x[300] = std::numeric_limits<float>::quiet_NaN();
  step(x);
  step(std::vector<float>(4096, 0.5f));
  EXPECT_THAT(step(x), testing::Each(0.5f));
}

// [2, 2048] and [2048, 2]: the first is of 4,096 numbers, and so is the second.
constexpr std::string_view kTwoLayers = R"(graph {
  input %x: f32[n, 2]
  constant %first: f32[2, 2048] = FIRST
  constant %second: f32[2048, 2] = SECOND
  %hidden: f32[n, 2048] = MatMul(%x, %first) @hidden
  %bent: f32[n, 2048] = Relu(%hidden) @bent
  %y: f32[n, 2] = MatMul(%bent, %second) @last
  output y = %y
}
)";

class In8Bits : public TrainingTest {
 protected:
  OwnedGraph model() {
    std::string text(kTwoLayers);
    for (const char* word : {"FIRST", "SECOND"}) {
      std::string bytes = "x'";
      for (int i = 0; i < 4096; ++i) {
        const auto number = static_cast<float>(0.05 * std::sin(i * (*word == 'F' ? 7 : 3)));
        const uint32_t bits = std::bit_cast<uint32_t>(number);
        for (int shift : {4, 0, 12, 8, 20, 16, 28, 24})  // little-endian
          bytes += "0123456789abcdef"[bits >> shift & 15];
      }
      text.replace(text.find(word), std::string_view(word).size(), bytes + "'");
    }
    return parse(text);
  }
  std::vector<float> weights(const json& options) {
    auto trained = train(model(), data(table(48)), options);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return trained.ok() ? weight(*trained, "second") : std::vector<float>();
  }
  static json options(const char* optimizer) {
    return {{"epochs", 4}, {"batch", 16}, {"rate", 0.002}, {"optimizer", optimizer}};
  }
};

TEST_F(In8Bits, AnUpdateIsCloseToThatInFloat32) {
  weights(options("adamw"));
  const json single = report_["history"];
  const std::vector<float> whole = weights(options("adamw_8bit"));
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(report_["history"][i]["loss"].get<double>(), single[i]["loss"].get<double>(),
                0.02 * single[i]["loss"].get<double>())
        << i;
  EXPECT_LT(single[3]["loss"].get<double>(), 0.9 * single[0]["loss"].get<double>());
  EXPECT_NE(report_["history"], single) << "moments are rounded";

  json given = options("adamw_8bit");  // its codes and scales are in the checkpoint
  given["run"] = (folder_ / "run").string();
  given["epochs"] = 2;
  weights(given);
  given["epochs"] = 4;
  given["resume"] = true;
  EXPECT_EQ(weights(given), whole);
}

}  // namespace
}  // namespace tenon::test

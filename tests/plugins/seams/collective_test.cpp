// SPDX-License-Identifier: Apache-2.0
// The role tenon.collective/1, by ranks that are threads.
#include "tenon/role/collective.h"

#include <thread>

#include <gmock/gmock.h>

#include "seams_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kRanks = 4;

class Collective : public SeamsTest {
 protected:
  Component rank(uint32_t r, uint32_t ranks, const std::string& group) {
    auto made = make("tenon.collective/1", "seams.threads",
                     {{"rank", r}, {"ranks", ranks}, {"group", group}});
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? std::move(*made) : Component();
  }
  // body(rank, its table, its self) on a thread for each rank; the messages of failures.
  template <class Body>
  std::vector<std::string> on_all(uint32_t ranks, const std::string& group, Body&& body) {
    std::vector<Component> made;
    for (uint32_t r = 0; r < ranks; ++r)
      made.push_back(rank(r, ranks, group));
    std::vector<std::string> failures(ranks);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        failures[r] = text_of(Status(body(r, made[r].table<tn_collective>(), made[r].self())));
      });
    for (std::thread& thread : threads)
      thread.join();
    return failures;
  }
  Tensor floats(const std::vector<float>& values) {
    return tensor<float>(TN_F32, {static_cast<int64_t>(values.size())}, values);
  }
};

TEST_F(Collective, SumsMeansAndExtremesAreTheSameOnAllRanks) {
  const std::vector<std::pair<uint32_t, std::vector<float>>> cases = {
      {TN_REDUCE_SUM, {6, -6}},
      {TN_REDUCE_MEAN, {1.5F, -1.5F}},
      {TN_REDUCE_MIN, {0, -3}},
      {TN_REDUCE_MAX, {3, 0}}};
  for (const auto& [how, want] : cases) {
    std::vector<std::vector<float>> got(kRanks);
    auto failures = on_all(kRanks, "reduce", [&, how = how](uint32_t r, auto* table, void* self) {
      auto x = static_cast<float>(r);
      Tensor in = floats({x, -x}), out = floats({99, 99});
      DLTensor from = in.dl(), to = out.dl();
      tn_status* failed = table->all_reduce(self, str("x"), how, &from, &to, nullptr);
      got[r] = numbers<float>(out);
      return failed;
    });
    for (uint32_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(failures[r], "");
      EXPECT_EQ(got[r], want) << "rank " << r << ", by " << how;
    }
  }
}

TEST_F(Collective, BroadcastsFromOneAndGathersFromAll) {
  std::vector<std::vector<float>> sent(3), gathered(3);
  auto failures = on_all(3, "move", [&](uint32_t r, auto* table, void* self) -> tn_status* {
    auto x = static_cast<float>(r);
    Tensor buffer = floats({x, 10 * x});
    Tensor joined = *Tensor::zeros(ctx_, TN_F32, std::vector<int64_t>{3, 2});
    DLTensor one = buffer.dl(), all = joined.dl();
    if (tn_status* failed = table->all_gather(self, str("g"), &one, &all, nullptr)) return failed;
    if (tn_status* failed = table->broadcast(self, str("b"), 2, &one, nullptr)) return failed;
    sent[r] = numbers<float>(buffer);
    gathered[r] = numbers<float>(joined);
    return nullptr;
  });
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(failures[r], "");
    EXPECT_THAT(sent[r], ElementsAre(2, 20));
    EXPECT_THAT(gathered[r], ElementsAre(0, 0, 1, 10, 2, 20));
  }
}

TEST_F(Collective, RanksThatDisagreeBreakTheGroup) {
  auto failures = on_all(2, "mixed", [&](uint32_t r, auto* table, void* self) -> tn_status* {
    Tensor in = floats(std::vector<float>(r + 1, 1.0F)), out = floats(std::vector<float>(r + 1));
    DLTensor from = in.dl(), to = out.dl();
    tn_status* first = table->all_reduce(self, str("x"), TN_REDUCE_SUM, &from, &to, nullptr);
    EXPECT_EQ(Status(first).code(), TN_FAILED_PRECONDITION);
    return table->all_reduce(self, str("x"), TN_REDUCE_SUM, &from, &to, nullptr);
  });
  for (const std::string& failure : failures)
    EXPECT_THAT(failure, HasSubstr("another one"));
}

TEST_F(Collective, NobodyWaitsForARankThatHasLeft) {
  auto stays = rank(0, 2, "left");
  {
    auto leaves = rank(1, 2, "left");
  }
  Tensor in = floats({1}), out = floats({0});
  DLTensor from = in.dl(), to = out.dl();
  Status failed(stays.table<tn_collective>()->all_reduce(stays.self(), str("x"), TN_REDUCE_SUM,
                                                         &from, &to, nullptr));
  EXPECT_EQ(failed.code(), TN_UNAVAILABLE) << text_of(failed);
}

// A node of a body that must run is replaced by the one for all examples, as it is outside of one.
TEST_F(Collective, NodesInBodiesAreBatched) {
  constexpr std::string_view kReduced = R"(%m: f32[3] = seams:AllReduce(%v)
        {collective = "seams.threads", options = "{\"group\": \"body\", \"ranks\": 1, \"rank\": 0}"} @reduce
      %t: f32[3] = Add(%m, %v) @twice)";
  const std::string chosen = cat(R"(graph {
    input %go: bool[]
    input %x: f32[3]
    %y: f32[3] = If(%go, %x) {then_branch = graph {
      input %v: f32[3]
      )",
                                 kReduced, R"(
      output t = %t
    }, else_branch = graph {
      input %v: f32[3]
      %n: f32[3] = Neg(%v) @n
      output n = %n
    }} @if
    output y = %y
  })");
  const std::string looped = cat(R"(graph {
    input %times: i64[]
    input %x: f32[3]
    %y: f32[3] = Loop(%times, _, %x) {captures = 0, body = graph {
      input %i: i64[]
      input %go: bool[]
      input %v: f32[3]
      )",
                                 kReduced, R"(
      output go = %go
      output t = %t
    }} @loop
    output y = %y
  })");
  for (const std::string& text : {chosen, looped}) {
    auto wide = apply(parse(text), "autodiff.vmap", {{"axis_size", 2}, {"in_axes", "none, 0"}});
    ASSERT_TRUE(wide.ok()) << text_of(wide.status());
    auto plan = Plan::on_first(ctx_, wide->view(), {}, {});
    ASSERT_TRUE(plan.ok()) << text_of(plan.status());
    Tensor one =
        text == chosen ? tensor<uint8_t>(TN_BOOL, {}, {1}) : tensor<int64_t>(TN_I64, {}, {1});
    Tensor x = tensor<float>(TN_F32, {2, 3}, {1, 2, 3, 4, 5, 6});
    ASSERT_EQ(text_of(plan->run(std::vector<DLTensor>{one.dl(), x.dl()})), "");
    EXPECT_THAT(numbers<float>((*plan)[0]), ElementsAre(2, 4, 6, 8, 10, 12));
  }
}

// y = x w + b, two classes.
constexpr std::string_view kLinear = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0.5, -0.25, 0]
  constant %b: f32[2] = [0, 0]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %y: f32[n, 2] = Add(%xw, %b) @sum
  output y = %y
}
)";

// Four ranks with a quarter of each batch, and the mean of their gradients, are one rank with all.
TEST_F(Collective, DataParallelTrainingIsTrainingOnAllData) {
  constexpr int kRows = 64, kShare = kRows / static_cast<int>(kRanks);
  std::vector<std::string> rows;
  for (int i = 0; i < kRows; ++i) {
    double a = (i * 37 % 101) / 101.0, b = (i * 53 % 103) / 103.0;
    rows.push_back(cat(a, ",", b, ",", a > b ? 1 : 0, "\n"));
  }
  auto data = [&](int begin, int end) {
    std::string text = "a,b,label\n";
    for (int i = begin; i < end; ++i)
      text += rows[static_cast<size_t>(i)];
    auto made = make("tenon.dataset/1", "datasets.csv",
                     {{"path", write(cat(begin, "_", end, ".csv"), text)}, {"label", "label"}});
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return std::move(*made);
  };
  json options = {{"epochs", 20},
                  {"batch", kRows},
                  {"rate", 0.5},
                  {"optimizer", "trainer.adam"},
                  {"backend", "reference"}};
  OwnedGraph model = parse(kLinear);
  Component whole = data(0, kRows);
  auto alone = apply(model, "trainer.train", options, {{"data", &whole}});
  ASSERT_TRUE(alone.ok()) << text_of(alone.status());

  std::vector<std::vector<float>> weights(kRanks);
  std::vector<Component> shares;
  for (int r = 0; r < static_cast<int>(kRanks); ++r)
    shares.push_back(data(r * kShare, (r + 1) * kShare));
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      json mine = options;
      json of_rank = {{"rank", r}, {"ranks", kRanks}, {"group", "training"}};
      mine["batch"] = kShare;
      mine["joint"] = {{"seams.average_gradients", {{"of_collective", of_rank.dump()}}}};
      auto trained = apply(model, "trainer.train", mine, {{"data", &shares[r]}});
      EXPECT_TRUE(trained.ok()) << text_of(trained.status());
      if (trained.ok()) weights[r] = weight(*trained, "w");
    });
  for (std::thread& thread : threads)
    thread.join();
  std::vector<float> want = weight(*alone, "w");
  EXPECT_GT(std::fabs(want[0]), 0.1F) << "it has learned something";
  for (uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(weights[r], weights[0]) << "ranks stay equal, to the bit";
    ASSERT_EQ(weights[r].size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(weights[r][i], want[i], 2e-5) << "rank " << r << ", weight " << i;
  }
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
#include "tenon/role/importance.h"

#include "tenon/sdk/listing.hpp"

#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Importance : public PruningTest {
 protected:
  // Two channels: a filter [2][3] and a reader [1][2][2], of which the last entry is nobody's.
  std::vector<double> score(std::string_view id, const json& options = {}, uint64_t index = 0) {
    auto made = make("tenon.importance/1", id, options);
    EXPECT_TRUE(made.ok());
    const float filter[] = {1, -2, 2, 0, 3, 0}, reader[] = {4, 0, -5, 12};
    const int64_t swapped[] = {1, 0};
    tn_group_member makes{sizeof makes, TN_MEMBER_MAKES, {},     {}, {}, 1, 2, 3,
                          filter,       nullptr,         nullptr};
    tn_group_member reads{sizeof reads, TN_MEMBER_READS, {},     {}, {}, 1, 2, 2,
                          reader,       nullptr,         swapped};
    const tn_group_member* members[] = {&makes, &reads};
    tn_channel_group group{sizeof group, 0, str("layer"), index, 2, 2, members};
    std::vector<double> out{-1, -1};
    const auto* table = made->table<tn_importance>();
    EXPECT_EQ(text_of(Status(table->score(made->self(), &group, out.data()))), "");
    return out;
  }
};

TEST_F(Importance, L1SumsMagnitudesOverAllLayersOfAChannel) {
  EXPECT_THAT(score("pruner.importance.l1"), ElementsAre(5 + 17, 3 + 4));
  EXPECT_THAT(score("pruner.importance.l1", {{"reads", false}}), ElementsAre(5, 3));
}

TEST_F(Importance, L2IsTheRootOfSquares) {
  EXPECT_THAT(score("pruner.importance.l2", {{"reads", false}}), ElementsAre(3, 3));
  EXPECT_THAT(score("pruner.importance.l2"), ElementsAre(std::sqrt(9.0 + 169), 5));
}

TEST_F(Importance, LampIsTheShareInWhatOutlivesAWeight) {
  // Squares 9 and 9 with one reader each: 9 + 169, 9 + 16.
  EXPECT_THAT(score("pruner.importance.lamp"), ElementsAre(1, 25.0 / 203));
  // Of equals the first goes last.
  EXPECT_THAT(score("pruner.importance.lamp", {{"reads", false}}), ElementsAre(1, 0.5));
}

// Filters (0, 0), (3, 4), (6, 8) and (3, 0): what lies in their midst is worth least.
TEST_F(Importance, TheMedianIsNearestToAllOthers) {
  auto made = make("tenon.importance/1", "pruner.importance.median", {});
  ASSERT_TRUE(made.ok());
  const float filters[] = {0, 0, 3, 4, 6, 8, 3, 0};
  tn_group_member makes{sizeof makes, TN_MEMBER_MAKES, {},     {}, {}, 1, 4, 2,
                        filters,      nullptr,         nullptr};
  const tn_group_member* members[] = {&makes};
  tn_channel_group group{sizeof group, 0, str("layer"), 0, 4, 1, members};
  std::vector<double> out(4);
  const auto* table = made->table<tn_importance>();

  EXPECT_EQ(text_of(Status(table->score(made->self(), &group, out.data()))), "");

  const double far = std::sqrt(9.0 + 64);
  EXPECT_THAT(out, ElementsAre(5 + 10 + 3, 5 + 5 + 4, 10 + 5 + far, 3 + 4 + far));

  makes.extent = 8, makes.inner = 1, group.n_channels = 8, out.resize(8);
  EXPECT_THAT(text_of(Status(table->score(made->self(), &group, out.data()))),
              HasSubstr("layer: expected filters of several numbers, got 1: single weights"));
}

TEST_F(Importance, ApozCountsWhatIsNotZero) {
  auto made = make("tenon.importance/1", "pruner.importance.apoz", {});
  ASSERT_TRUE(made.ok());
  // Two samples of two channels of three places; the second reader has its channels swapped.
  const float seen[] = {0, 1, 2, 0, 0, 0, 0, 0, -3, 0, 5, 0}, other[] = {1, 0};
  const int64_t swapped[] = {1, 0};
  tn_group_member first{sizeof first, TN_MEMBER_ACTIVATION, {}, {}, {}, 2, 2, 3, seen, nullptr,
                        nullptr};
  tn_group_member second{sizeof second, TN_MEMBER_ACTIVATION, {}, {}, {}, 1, 2, 1, other, nullptr,
                         swapped};
  tn_group_member reads = second;
  reads.kind = TN_MEMBER_READS;
  const tn_group_member* members[] = {&first, &second, &reads};
  tn_channel_group group{sizeof group, 0, str("layer"), 0, 2, 3, members};
  std::vector<double> out(2);
  const auto* table = made->table<tn_importance>();

  EXPECT_EQ(text_of(Status(table->score(made->self(), &group, out.data()))), "");

  EXPECT_THAT(out, ElementsAre(3.0 / 7, 2.0 / 7));
  group.n_members = 2;
  EXPECT_THAT(text_of(Status(table->score(made->self(), &group, out.data()))),
              HasSubstr("single weights have no zeros of their own"));
}

TEST_F(Importance, GivenScoresAreTakenByTheLayersName) {
  EXPECT_THAT(score("pruner.importance.given", {{"scores", {{"layer", {3, -1}}}}}),
              ElementsAre(3, -1));
}

TEST_F(Importance, RandomScoresComeFromSeedAndGroup) {
  auto first = score("pruner.importance.random", {{"seed", 1}});

  EXPECT_EQ(score("pruner.importance.random", {{"seed", 1}}), first);
  EXPECT_NE(score("pruner.importance.random", {{"seed", 2}}), first);
  EXPECT_NE(score("pruner.importance.random", {{"seed", 1}}, 7), first);
}

// Two channels of two weights: what multiplies them is [[2, -2], [-4, 3]] with their gradients.
class GradientImportance : public Importance {
 protected:
  // The kinds of members; the readers' gradients, and the makers' where `of_makers` has some.
  std::vector<double> score(std::string_view id, bool read, const float* of_makers) {
    auto made = make("tenon.importance/1", id);
    EXPECT_TRUE(made.ok());
    const float data[] = {1, -2, 4, 3}, gradient[] = {2, 1, -1, 1};
    tn_group_member reads{sizeof reads, TN_MEMBER_READS, {},     {}, {}, 1, 2, 2,
                          data,         gradient,        nullptr};
    tn_group_member makes = reads;
    makes.kind = TN_MEMBER_MAKES;
    makes.gradient = of_makers;
    const tn_group_member* members[] = {&makes, &reads};
    tn_channel_group group{sizeof group, 0, str("layer"), 0, 2, read ? 2u : 1u, members};
    std::vector<double> out(2);
    const auto* table = made->table<tn_importance>();
    uint32_t needs = 0;
    EXPECT_EQ(text_of(Status(table->needs(made->self(), &needs))), "");
    EXPECT_EQ(needs, TN_IMPORTANCE_GRADIENTS);
    error_ = text_of(Status(table->score(made->self(), &group, out.data())));
    return out;
  }
  std::string error_;
};
constexpr float kOfMakers[] = {3, 0, 0, -1};

TEST_F(GradientImportance, TaylorSquaresTheGradientByAGate) {
  // (2 - 2)^2, (-4 + 3)^2: beside a reader what makes a channel does not count.
  EXPECT_THAT(score("pruner.importance.taylor", true, nullptr), ElementsAre(0, 1));
  EXPECT_EQ(error_, "");
  EXPECT_THAT(score("pruner.importance.taylor", false, kOfMakers), ElementsAre(9, 9));
}

TEST_F(GradientImportance, TheHessianIsHalfTheSquaredGradientTimesTheSquaredWeight) {
  EXPECT_THAT(score("pruner.importance.hessian", true, nullptr),
              ElementsAre(0.5 * (4 + 4), 0.5 * (16 + 9)));
  EXPECT_EQ(error_, "");
  EXPECT_THAT(score("pruner.importance.hessian", false, kOfMakers), ElementsAre(0.5 * 9, 0.5 * 9));
}

TEST_F(GradientImportance, SnipAddsSizesOfWhatMakesAndWhatReads) {
  EXPECT_THAT(score("pruner.importance.snip", true, kOfMakers), ElementsAre(4 + 3, 7 + 3));
  EXPECT_THAT(score("pruner.importance.snip", false, kOfMakers), ElementsAre(3, 3));
}

TEST_F(GradientImportance, WithoutAGradientThereIsNoScore) {
  for (const char* id : {"pruner.importance.taylor", "pruner.importance.hessian"}) {
    score(id, false, nullptr);
    EXPECT_THAT(error_, HasSubstr("no gradient of "));
  }
  score("pruner.importance.snip", true, nullptr);
  EXPECT_THAT(error_, HasSubstr("no gradient of "));
}

// conv (4 channels, of which BatchNormalization scales the third least) -> mean -> classifier
class NormalizedImportance : public Importance {
 protected:
  void build_normalized(bool has_norm) {
    build([&](EditView edit) {
      Value x = conv(edit, input(edit, "x", {-1, 2, 4, 4}), "conv", {4, 2, 3, 3});
      if (has_norm) {
        auto vector = [&](std::string_view name, const Floats& numbers) {
          auto made = edit.constant<float>(TN_F32, {4}, numbers, name);
          EXPECT_TRUE(made.ok());
          return *made;
        };
        x = node(edit, "BatchNormalization",
                 {x, vector("scale", {-3, 2, 0.5, 1}), vector("shift", {0, 0, 100, 0}),
                  vector("mean", {0, 9, 9, 0}), vector("variance", {1, 9, 9, 1})},
                 "norm");
      }
      classify(edit, relu(edit, x, "relu"), 4);
    });
  }
};

TEST_F(NormalizedImportance, TheFactorsOfNormalizationRank) {
  build_normalized(true);

  ASSERT_EQ(
      apply("pruner.structured", {{"ratio", 0.5}, {"importance", "batch_norm"}, {"scores", true}}),
      "");

  EXPECT_EQ(group("conv")["removed"], json({2, 3}));
  EXPECT_EQ(group("conv")["scores"], json({3, 2, 0.5, 1}));
}

TEST_F(NormalizedImportance, WithoutNormalizationTheFixIsNamed) {
  build_normalized(false);

  EXPECT_THAT(apply("pruner.structured", {{"importance", "batch_norm"}}),
              testing::HasSubstr("no BatchNormalization scales channel 0 of conv"));
}

TEST_F(NormalizedImportance, ScoresOfAReportCanBeGivenAgain) {
  build_normalized(true);
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.25}, {"scores", true}}), "");
  json scores{{"conv", group("conv")["scores"]}};
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}}), "");
  json wanted = group("conv")["removed"];

  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5},
                                        {"importance", "given"},
                                        {"importance_options", {{"scores", scores}}}}),
            "");

  EXPECT_EQ(group("conv")["removed"], wanted);
  scores["conv"].erase(0);
  EXPECT_THAT(apply("pruner.structured",
                    {{"importance", "given"}, {"importance_options", {{"scores", scores}}}}),
              testing::HasSubstr("option scores: conv: expected a list of 4 numbers, got 3"));
}

TEST_F(Importance, WeightsThatAreNotFiniteAreRefused) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2});
    auto w = edit.constant<float>(TN_F32, {2, 2}, {1, 2, NAN, 4}, "w");
    Value h = node(edit, "Gemm", {x, *w}, "fc1");
    ASSERT_EQ(
        text_of(edit.output("y", node(edit, "Gemm", {h, weight(edit, "v", {2, 1}, 1)}, "fc2"))),
        "");
  });

  EXPECT_THAT(apply("pruner.structured", {{"ratio", 0.5}}),
              testing::HasSubstr("expected a finite score for each channel of fc1, got nan"));
}

// The defaults stand in the schema, where help shows them, and may be given to any importance.
TEST_F(Importance, OptionsThatItDoesNotReadAreTheirDefaultsOrRefused) {
  const json others{{"label", "class"}, {"loss", "mse"}, {"axis", 2},      {"samples", 8},
                    {"batch", 4},       {"orders", 2},   {"order_seed", 1}};
  for (const json& pass : listed_components(ctx_, "tenon.pass/1")) {
    const std::string id = pass["id"];
    if (id != "pruner.structured" && id != "pruner.unstructured") continue;
    for (const auto& [key, other] : others.items()) {
      const json& usual = pass["schema"]["properties"][key].at("default");
      EXPECT_EQ(refusal("tenon.pass/1", id, {{"importance", "l1"}, {key, usual}}), "");
      EXPECT_THAT(refusal("tenon.pass/1", id, {{"importance", "l1"}, {key, other}}),
                  HasSubstr(cat("option ", key, ": expected an importance that looks at ")));
    }
  }
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// Blocks that go as a whole.
#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Depth : public PruningTest {
 protected:
  // x [batch, 6] -> three blocks, of which the second adds little -> y
  void build_blocks() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 6});
      const float scales[] = {2, 0.01F, 1};
      for (uint64_t i = 0; i < 3; ++i) {
        std::string name = cat("block", i);
        Value wide = node(edit, "MatMul", {x, weight(edit, name + ".up", {6, 8}, 10 + i, 1)},
                          name + ".wide");
        Value up = relu(edit, wide, name + ".relu");
        Value down =
            node(edit, "MatMul", {up, weight(edit, name + ".down", {8, 6}, 20 + i, scales[i])},
                 name + ".narrow");
        x = node(edit, "Add", {x, down}, name);
      }
      Value y = node(edit, "MatMul", {x, weight(edit, "head", {6, 3}, 7)}, "head.product");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  std::vector<bool> dropped() {
    std::vector<bool> out;
    for (const json& one : report_["blocks"])
      out.push_back(one["dropped"].get<bool>());
    return out;
  }
  std::string samples() {
    std::ifstream in(data_of_numbers("x", {8, 6}, random(48, 3)), std::ios::binary);
    return write("set.npz", zip({{"x.npy", std::string(std::istreambuf_iterator<char>(in), {})}}));
  }
};

TEST_F(Depth, TheBlockThatChangesLeastGoesFirst) {
  build_blocks();

  ASSERT_EQ(apply("pruner.depth", {{"blocks", 1}, {"data", samples()}}), "");

  EXPECT_THAT(dropped(), ElementsAre(false, true, false));
  EXPECT_EQ(report_["blocks"][1]["parameters"], 96);
  EXPECT_EQ(report_["parameters"]["before"], 3 * 96 + 18);
  EXPECT_EQ(report_["parameters"]["after"], 2 * 96 + 18);
  Floats batch = random(12, 5), expected = run(model_, {2, 6}, batch);
  double least = largest_difference(expected, run(result_, {2, 6}, batch));
  EXPECT_GT(least, 0);
  // Without either of the others more is missing.
  for (const char* kept : {"block0", "block2"}) {
    json others = {"block1", kept};
    ASSERT_EQ(apply("pruner.depth", {{"blocks", 1}, {"importance", "random"}, {"skip", others}}),
              "");
    EXPECT_GT(largest_difference(expected, run(result_, {2, 6}, batch)), least) << kept;
  }
}

TEST_F(Depth, AveragesOverTheEntriesThatEachBlockSees) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2, 3});
    auto block = [&](Value in, const std::string& name) {
      Value made = node(edit, "MatMul", {in, weight(edit, name + ".w", {3, 3}, 4, 1)}, name + ".p");
      return node(edit, "Add", {in, made}, name);
    };
    Value a = block(x, "samples");
    Value tokens = node(edit, "Reshape", {a, *edit.ints({-1, 3})}, "tokens");
    Value y = node(edit, "Reshape", {block(tokens, "each"), *edit.ints({-1, 2, 3})}, "y");
    ASSERT_EQ(text_of(edit.output("out", y)), "");
  });
  // Both tokens of a sample are the same: what a block does to the sample it does to each of them.
  Floats x;
  for (float one : random(8, 3))
    x.insert(x.end(), {one, 1, 2, one, 1, 2});
  json options{{"data", data_of_numbers("x", {8, 2, 3}, x)}, {"dry_run", true}};
  options["skip"] = {"samples*"};

  ASSERT_EQ(apply("pruner.depth", options), "");
  const double alone = report_["blocks"][0]["influence"];
  options.erase("skip");
  ASSERT_EQ(apply("pruner.depth", options), "");

  EXPECT_NEAR(report_["blocks"][1]["influence"].get<double>(), alone, 1e-9);
  EXPECT_LE(alone, 2);
}

TEST_F(Depth, WithoutAnyBlockTheValueGoesAround) {
  build_blocks();

  ASSERT_EQ(apply("pruner.depth", {{"ratio", 1}, {"importance", "random"}}), "");

  Floats head = random(18, 7, 0.5F), x = random(6, 5), expected(3);
  for (size_t i = 0; i < 6; ++i)
    for (size_t o = 0; o < 3; ++o)
      expected[o] += x[i] * head[3 * i + o];
  EXPECT_LE(largest_difference(expected, run(result_, {1, 6}, x)), 1e-6);
}

TEST_F(Depth, ReportsTheSeedOfRandomBlocks) {
  build_blocks();
  std::set<std::string> first;
  for (int seed = 0; seed < 8; ++seed) {
    const json given{{"blocks", 1}, {"importance", "random"}, {"seed", seed}};
    ASSERT_EQ(apply("pruner.depth", given), "");
    EXPECT_EQ(report_["seed"], seed);
    const json once = report_;
    ASSERT_EQ(apply("pruner.depth", given), "");
    EXPECT_EQ(report_, once);
    first.insert(report_["blocks"].dump());
  }
  EXPECT_GT(first.size(), 1u);
}

TEST_F(Depth, IgnoresBlocksByTheirNodes) {
  build_blocks();

  ASSERT_EQ(apply("pruner.depth",
                  {{"blocks", 1}, {"data", samples()}, {"skip", {"block1.*"}}, {"dry_run", true}}),
            "");

  EXPECT_THAT(dropped(), ElementsAre(false, true));  // the last of the two that are left
  EXPECT_EQ(report_["blocks"][1]["join"], "block2");
  EXPECT_EQ(result_.view().nodes().size(), model_.view().nodes().size());
}

TEST_F(Depth, SaysWhatItMissed) {
  build_blocks();
  EXPECT_THAT(apply("pruner.depth", {{"blocks", 1}}), HasSubstr("data"));
  EXPECT_THAT(apply("pruner.depth", {{"blocks", 4}, {"importance", "random"}}),
              HasSubstr("option blocks: expected at most 3, which the model has, got 4"));
  EXPECT_THAT(apply("pruner.depth", {{"skip", "*"}, {"importance", "random"}}),
              HasSubstr("no block can go"));
}

}  // namespace
}  // namespace tenon::test

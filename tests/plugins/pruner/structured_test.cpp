// SPDX-License-Identifier: Apache-2.0
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<int64_t> kImage{2, 3, 6, 6};

class Structured : public PruningTest {
 protected:
  // x [batch, 2] -> fc1 (4 units) -> Relu -> fc2 -> y, with weights whose norms are known
  void build_mlp() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 2});
      auto w1 = edit.constant<float>(TN_F32, {2, 4}, {1, 5, 2, 7, 1, 5, 2, 7}, "w1");
      auto b1 = edit.constant<float>(TN_F32, {4}, {10, 20, 30, 40}, "b1");
      auto w2 = edit.constant<float>(TN_F32, {4, 1}, {1, 2, 3, 4}, "w2");
      Value h = relu(edit, node(edit, "Gemm", {x, *w1, *b1}, "fc1"), "relu");
      ASSERT_EQ(text_of(edit.output("y", node(edit, "Gemm", {h, *w2}, "fc2"))), "");
    });
  }
};

TEST_F(Structured, RemovesTheUnitsOfLeastNormFromAllTheirWeights) {
  build_mlp();

  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"importance", "l1"}}), "");

  // Sums of magnitudes: 2+1, 10+2, 4+3, 14+4: units 0 and 2 go.
  EXPECT_EQ(group("fc1")["removed"], json({0, 2}));
  EXPECT_THAT(members("fc1"), ElementsAre("b1 vector", "w1 makes", "w2 reads"));
  auto numbers = [&](const char* name) {
    Tensor t = result_.view().find(name).constant();
    return Floats(t.data<float>(), t.data<float>() + element_count(t.dl()));
  };
  EXPECT_THAT(numbers("w1"), ElementsAre(5, 7, 5, 7));
  EXPECT_THAT(numbers("b1"), ElementsAre(20, 40));
  EXPECT_THAT(numbers("w2"), ElementsAre(2, 4));
  EXPECT_THAT(run(result_, {1, 2}, {1, 1}), ElementsAre(2 * 30 + 4 * 54));
  EXPECT_EQ(report_["parameters"]["before"], 16);
  EXPECT_EQ(report_["parameters"]["after"], 8);
  EXPECT_EQ(report_["macs"]["before"], 12);
  EXPECT_EQ(report_["macs"]["after"], 6);
}

TEST_F(Structured, ResidualBranchesLoseTheSameChannels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    std::vector<int64_t> pads{1, 1, 1, 1};
    Value stem = relu(edit, conv(edit, x, "stem", {10, 3, 3, 3}, {{"pads", pads}}), "stem_relu");
    Value a = relu(edit, conv(edit, stem, "a", {6, 10, 1, 1}), "a_relu");
    Value b = conv(edit, a, "b", {10, 6, 3, 3}, {{"pads", pads}});
    Value bn = node(edit, "BatchNormalization",
                    {b, weight(edit, "scale", {10}, 1), weight(edit, "shift", {10}, 2),
                     weight(edit, "mean", {10}, 3), weight(edit, "var", {10}, 4, 0)},
                    "bn");
    classify(edit, relu(edit, node(edit, "Add", {stem, bn}, "sum"), "out"), 10);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_THAT(members("stem"), ElementsAre("a.w reads", "b.b vector", "b.w makes", "fc.w reads",
                                           "mean vector", "scale vector", "shift vector",
                                           "stem.b vector", "stem.w makes", "var vector"));
  EXPECT_EQ(shape_of_value("b.w"), (std::vector<int64_t>{4, 3, 3, 3}));  // 60 % gone
}

// The mask made here: zeros in what makes the channels and in what scales them, nothing else.
TEST_F(Structured, RemovingEqualsSilencingTheMakers) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value stem = relu(edit, conv(edit, x, "stem", {8, 3, 1, 1}), "stem_relu");
    Value deep = relu(edit, conv(edit, stem, "deep", {8, 1, 3, 3}, {{"group", 8}}), "deep_relu");
    Value a = relu(edit, conv(edit, deep, "a", {12, 8, 1, 1}), "a_relu");
    classify(edit, relu(edit, conv(edit, a, "b", {6, 12, 1, 1}), "b_relu"), 6);
  });
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.6}}), "");
  Floats batch = random(count(kImage), 9), got = run(result_, kImage, batch);

  auto edit = Edit::begin(model_.get());
  ASSERT_TRUE(edit.ok());
  for (const json& one : report_["groups"]) {
    for (const json& member : one["members"]) {
      if (member["role"] == "reads") continue;
      EXPECT_EQ(member["axis"], 0);
      Value constant = edit->graph().find(member["value"].get<std::string>());
      auto copy = Tensor::copy_of(ctx_, constant.constant().dl());
      ASSERT_TRUE(copy.ok());
      size_t row = count(constant.type().dims) / static_cast<size_t>(constant.type().dims[0]);
      for (size_t channel : one["removed"])
        std::fill_n(copy->data<float>() + channel * row, row, 0.F);
      auto silent = edit->constant(*copy);
      ASSERT_TRUE(silent.ok());
      ASSERT_EQ(text_of(edit->replace(constant, *silent)), "");
    }
  }
  ASSERT_EQ(text_of(edit->commit()), "");

  Floats expected = run(model_, kImage, batch);
  EXPECT_LE(largest_difference(expected, got), 1e-5 * std::max(1.0, largest(expected)));
  EXPECT_GT(largest(expected), 1e-3);
}

TEST_F(Structured, BarriersSayWhatHoldsTheChannels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4});
    auto dense = [&](Value from, const std::string& name) {
      return node(edit, "MatMul", {from, weight(edit, name + ".w", {4, 4}, 1)}, name);
    };
    Value a = node(edit, "LogSoftmax", {dense(x, "a")}, "norm");
    Value b = node(edit, "Softmax", {dense(a, "b")}, "soft");
    Value c = node(edit, "Mystery", {dense(b, "c")}, "strange");
    auto axes = edit.ints({1});
    Value d = node(edit, "ReduceMean", {dense(x, "d"), *axes}, "mean");
    ASSERT_EQ(text_of(edit.output("y", c)), "");
    ASSERT_EQ(text_of(edit.output("z", d)), "");
  });

  ASSERT_EQ(apply("pruner.explain", json::object()), "");

  EXPECT_TRUE(report_["groups"].empty());
  EXPECT_EQ(barrier("a"), "norm (LogSoftmax) mixes its entries");
  EXPECT_EQ(barrier("b"), "soft (Softmax) mixes its entries");
  EXPECT_EQ(barrier("c"), "strange (Mystery): the operator is not known");
  EXPECT_EQ(barrier("d"), "mean (ReduceMean) reduces it");
  EXPECT_THAT(apply("pruner.structured", json::object()),
              HasSubstr("nothing to prune (a: norm (LogSoftmax) mixes its entries; b: "));
}

TEST_F(Structured, ConcatenatedLayersKeepTheirOwnShares) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {4, 3, 1, 1}), "ar");
    Value b = relu(edit, conv(edit, x, "b", {10, 3, 1, 1}), "br");
    Value both = node(edit, "Concat", {a, b, a}, "both", {{"axis", 1}});
    classify(edit, relu(edit, conv(edit, both, "c", {8, 18, 1, 1}), "cr"), 8);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(group("a")["kept"], 2);
  EXPECT_EQ(group("b")["kept"], 4);
  EXPECT_EQ(shape_of_value("c.w"), (std::vector<int64_t>{3, 8, 1, 1}));  // 4.8 of 8
}

TEST_F(Structured, GatedHalvesOfASplitStayPaired) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value wide = conv(edit, x, "wide", {16, 3, 1, 1});
    auto halves = edit.add({.type = "Split",
                            .inputs = {wide},
                            .attrs = {{"axis", 1}, {"num_outputs", 2}},
                            .n_outputs = 2,
                            .name = "split"});
    ASSERT_TRUE(halves.ok());
    Value gate = node(edit, "Sigmoid", {halves->output(0)}, "gate");
    classify(edit, node(edit, "Mul", {gate, halves->output(1)}, "gated"), 8);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(group("wide")["channels"], 8);
  EXPECT_EQ(group("wide")["width"], 2);
}

TEST_F(Structured, SlicesFollowTheChannelsThatStay) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value wide = relu(edit, conv(edit, x, "wide", {12, 3, 1, 1}), "wr");
    auto from = edit.ints({4}), to = edit.ints({-1}), axis = edit.ints({1});
    Value part = node(edit, "Slice", {wide, *from, *to, *axis}, "part");
    classify(edit, conv(edit, part, "c", {8, 7, 1, 1}), 8);
  });

  expect_pruned_equals_masked(kImage);
}

// As exporters write the chunks of a ShuffleNet: where they end is computed.
TEST_F(Structured, ChannelsThatAreShuffledStayBehindAComputedSlice) {
  build([&](EditView edit) {
    Value x = input(edit, "x", kImage);
    Value wide = relu(edit, conv(edit, x, "wide", {24, 3, 1, 1}), "wr");
    Value shape = node(edit, "Shape", {wide}, "shape");
    auto from = edit.ints({0}), axis = edit.ints({1}), two = edit.ints({2});
    Value channels = node(edit, "Gather", {shape, *axis}, "channels");
    Value half = node(edit, "Div", {channels, *two}, "half");
    Value part = node(edit, "Slice", {wide, *from, half, *axis}, "part");
    auto pairs = edit.ints({2, 2, 6, 6, 6}), joined = edit.ints({2, 12, 6, 6});
    Value split = node(edit, "Reshape", {part, *pairs}, "split");
    const std::vector<int64_t> turn{0, 2, 1, 3, 4};
    Value transposed = node(edit, "Transpose", {split}, "transposed", {{"perm", turn}});
    Value mixed = node(edit, "Reshape", {transposed, *joined}, "mixed");
    Value deep = conv(edit, mixed, "depthwise", {12, 1, 3, 3}, {{"group", 12}});
    classify(edit, relu(edit, conv(edit, deep, "project", {40, 12, 1, 1}), "pr"), 40);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_THAT(barrier("depthwise"), HasSubstr("a factor of an axis that split (Reshape) joins"));
}

TEST_F(Structured, DepthwiseConvolutionsLoseGroups) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value wide = relu(edit, conv(edit, x, "expand", {12, 3, 1, 1}), "er");
    Value deep = relu(edit, conv(edit, wide, "depthwise", {24, 1, 3, 3}, {{"group", 12}}), "dr");
    classify(edit, conv(edit, deep, "project", {8, 24, 1, 1}), 8);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(shape_of_value("depthwise.w"), (std::vector<int64_t>{10, 1, 3, 3}));
  EXPECT_EQ(result_.view().find("depthwise").producer().attr_int("group"), 5);
}

TEST_F(Structured, GroupedConvolutionsKeepEqualGroups) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value wide = relu(edit, conv(edit, x, "wide", {12, 3, 1, 1}), "wr");
    Value grouped = relu(edit, conv(edit, wide, "grouped", {8, 6, 3, 3}, {{"group", 2}}), "gr");
    classify(edit, conv(edit, grouped, "c", {8, 8, 1, 1}), 8);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(group("wide")["channels"], 6);  // the same one of both groups
  EXPECT_EQ(shape_of_value("grouped.w"), (std::vector<int64_t>{4, 3, 3, 3}));
}

TEST_F(Structured, TransposedConvolutionsAreCutTheOtherWayRound) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {10, 3, 1, 1}), "ar");
    Value up =
        node(edit, "ConvTranspose",
             {a, weight(edit, "up.w", {10, 6, 2, 2}, 5), weight(edit, "up.b", {6}, 6)}, "up");
    classify(edit, up, 6);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(shape_of_value("up.w"), (std::vector<int64_t>{4, 3, 2, 2}));
}

TEST_F(Structured, AFlattenedChannelTakesAllItsPixels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {10, 3, 3, 3}), "ar");
    Value flat = node(edit, "Flatten", {a}, "flat");
    Value y = node(edit, "Gemm", {flat, weight(edit, "fc.w", {160, 5}, 7)}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(shape_of_value("fc.w"), (std::vector<int64_t>{64, 5}));
}

TEST_F(Structured, SqueezeAndExciteScalesWhatItReads) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = node(edit, "HardSwish", {conv(edit, x, "a", {10, 3, 1, 1})}, "ar");
    Value mean = node(edit, "GlobalAveragePool", {a}, "squeeze");
    Value less = relu(edit, conv(edit, mean, "less", {4, 10, 1, 1}), "lr");
    Value gate = node(edit, "HardSigmoid", {conv(edit, less, "more", {10, 4, 1, 1})}, "gate");
    classify(edit, node(edit, "Mul", {a, gate}, "excite"), 10);
  });

  expect_pruned_equals_masked(kImage);
}

TEST_F(Structured, AttentionLosesWholeHeads) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 7, 12});
    std::vector<int64_t> heads{0, 2, 1, 3}, keys{0, 2, 3, 1};
    auto split = edit.ints({0, 0, 4, 3}), join = edit.ints({0, 0, 12});
    auto part = [&](const std::string& name, const std::vector<int64_t>& perm, uint64_t seed) {
      Value made = node(edit, "MatMul", {x, weight(edit, name + ".w", {12, 12}, seed)}, name);
      Value biased =
          node(edit, "Add", {made, weight(edit, name + ".b", {12}, seed + 1)}, name + "b");
      Value cut = node(edit, "Reshape", {biased, *split}, name + "r");
      return node(edit, "Transpose", {cut}, name + "t", {{"perm", perm}});
    };
    Value q = part("q", heads, 1), k = part("k", keys, 3), v = part("v", heads, 5);
    Value near = node(edit, "Softmax", {node(edit, "MatMul", {q, k}, "scores")}, "softmax");
    Value mixed = node(edit, "Transpose", {node(edit, "MatMul", {near, v}, "mix")}, "back",
                       {{"perm", heads}});
    Value flat = node(edit, "Reshape", {mixed, *join}, "joined");
    Value out = node(edit, "MatMul", {flat, weight(edit, "o.w", {12, 12}, 7)}, "o");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "Add", {out, x}, "sum"))), "");
  });

  expect_pruned_equals_masked({2, 7, 12});

  EXPECT_EQ(group("q")["channels"], 4);
  EXPECT_EQ(group("q")["width"], 3);
  EXPECT_EQ(group("q")["kept"], 2);
  EXPECT_EQ(shape_of_value("v.w"), (std::vector<int64_t>{12, 6}));
  EXPECT_EQ(shape_of_value("o.w"), (std::vector<int64_t>{6, 12}));
}

TEST_F(Structured, GlobalScopeComparesLayers) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {10, 3, 1, 1}), "ar");
    classify(edit, relu(edit, conv(edit, a, "b", {10, 10, 1, 1}), "br"), 10);
  });

  expect_pruned_equals_masked(kImage, {{"scope", "global"}});

  EXPECT_EQ(group("a")["removed"].size() + group("b")["removed"].size(), 12);
}

TEST_F(Structured, WhatStaysIsAMultiple) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {24, 3, 1, 1}), "ar");
    classify(edit, relu(edit, conv(edit, a, "b", {6, 24, 1, 1}), "br"), 6);
  });

  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"round_to", 8}}), "");

  EXPECT_EQ(group("a")["kept"], 16);  // 12, rounded up
  EXPECT_EQ(group("b")["kept"], 6);   // has less than a multiple
}

TEST_F(Structured, ASharedWeightIsCutOnce) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = conv(edit, x, "a", {8, 3, 1, 1});
    Value w = weight(edit, "shared", {8, 8, 1, 1}, 11);
    Value b = relu(edit, node(edit, "Conv", {a, w}, "b"), "br");
    classify(edit, node(edit, "Conv", {b, w}, "c"), 8);
  });

  expect_pruned_equals_masked(kImage);

  EXPECT_EQ(shape_of_value("shared"), (std::vector<int64_t>{4, 4, 1, 1}));
}

TEST_F(Structured, LayersHaveRatiosOfTheirOwn) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value a = relu(edit, conv(edit, x, "a", {10, 3, 1, 1}), "ar");
    Value b = relu(edit, conv(edit, a, "b", {10, 10, 1, 1}), "br");
    classify(edit, relu(edit, conv(edit, b, "c", {10, 10, 1, 1}), "cr"), 10);
  });

  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"layers", {{"b", 0.2}}}, {"skip", {"c"}}}),
            "");

  EXPECT_EQ(group("a")["kept"], 5);
  EXPECT_EQ(group("b")["kept"], 8);
  EXPECT_EQ(shape_of_value("c.w"), (std::vector<int64_t>{10, 8, 1, 1}));
  EXPECT_EQ(report_["left"][0]["why"], "in the skip list (c)");
}

TEST_F(Structured, BadOptionsSayWhatWasExpected) {
  build_mlp();

  EXPECT_THAT(apply("pruner.structured", {{"ratio", 1.0}}), HasSubstr("option ratio: expected"));
  EXPECT_THAT(apply("pruner.structured", {{"ratio", -0.1}}), HasSubstr("option ratio: expected"));
  EXPECT_THAT(
      apply("pruner.structured", {{"importance", "l3"}}),
      HasSubstr(
          "option importance: expected one of apoz, batch_norm, given, grasp, hessian, l1, "
          "l2, lamp, median, random, shapley, snip, synflow, taylor, taylor2, wanda, got 'l3'"));
  EXPECT_THAT(apply("pruner.structured", {{"importance", "taylor"}}),
              HasSubstr("option data: expected a data set with labels"));
  EXPECT_THAT(apply("pruner.structured", {{"layers", {{"fc1", 1.0}}}}),
              HasSubstr("option layers: fc1: ratio 1 would empty the layer"));
  EXPECT_THAT(apply("pruner.structured", {{"layers", {{"fc1", "half"}}}}),
              HasSubstr("option layers: fc1: expected a ratio from 0 to below 1, got \"half\""));
  EXPECT_THAT(apply("pruner.structured", {{"layers", {{"fc9", 0.5}}}}),
              HasSubstr("option layers: fc9: expected the name, operator or scope of a layer"));
  EXPECT_THAT(
      apply("pruner.structured", {{"ratio", 0.9}, {"scope", "global"}, {"min_channels", 3}}),
      HasSubstr("ratio 0.9 would empty layers: of 4 channels 1 can go"));
  EXPECT_EQ(result_.get(), nullptr);
}

TEST_F(Structured, ALayerThatMustStaySaysWhy) {
  build_mlp();

  EXPECT_THAT(apply("pruner.structured", {{"layers", {{"fc2", 0.5}}}}),
              HasSubstr("option layers: fc2 cannot be pruned: the channels of its weight w2 must "
                        "stay, because it is of the model's output y"));
  EXPECT_THAT(apply("pruner.structured", {{"skip", {"fc*"}}}),
              HasSubstr("nothing to prune (fc1: in the skip list (fc*); fc2: it is of the model's "
                        "output y)"));
}

}  // namespace
}  // namespace tenon::test

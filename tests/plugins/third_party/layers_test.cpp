// SPDX-License-Identifier: Apache-2.0
#include "plugins/third_party/third_party_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

class ThirdPartysLayer : public ThirdPartyTest {
 protected:
  // x [batch, 24] -> Gated -> Linear -> y
  void build_gated() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 24});
      Value h = acme(edit, "Gated",
                     {x, weight(edit, "w", {24, 32}, 1, 0.2F), weight(edit, "v", {32, 24}, 2, 0.2F),
                      weight(edit, "b", {32}, 3)},
                     "gate");
      Value y = acme(edit, "Linear", {h, weight(edit, "u", {8, 32}, 4)}, "last");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  Node find(std::string_view name) {
    for (Node n : result_.view().nodes())
      if (n.name() == name) return n;
    return {};
  }
  // Scales of the weight that this input of the node is.
  int64_t scales(std::string_view name, uint64_t input) {
    Node made = find(name).input(input).producer();
    EXPECT_TRUE(made && made.is("DequantizeLinear")) << name << " " << input;
    return made ? element_count(made.input(1).constant().dl()) : 0;
  }
  int64_t scale_axis(std::string_view name, uint64_t input) {
    return find(name).input(input).producer().attr_int("axis", -9);
  }
};

TEST_F(ThirdPartysLayer, HasEachOfItsWeightsInEightBitsByChannel) {
  build_gated();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {24}, 64, 10)}, {"observer", "minmax"}}),
            "");

  EXPECT_EQ(scales("gate", 1), 32);
  EXPECT_EQ(scale_axis("gate", 1), 1);
  EXPECT_EQ(scales("gate", 2), 32);
  EXPECT_EQ(scale_axis("gate", 2), 0);
  EXPECT_EQ(scales("last", 1), 8);
  EXPECT_EQ(find("gate").input(3).producer().input(0).dtype(), TN_I32) << "its bias";
  EXPECT_TRUE(find("gate").input(0).producer().is("DequantizeLinear"));
  Floats batch = random(24 * 64, 10);  // what calibration has seen, so that nothing is clipped
  EXPECT_GT(cosine(run(model_, {64, 24}, batch), run(result_, {64, 24}, batch)), 0.998);
  EXPECT_EQ(report_["counts"]["compute"], 2);
}

TEST_F(ThirdPartysLayer, HasEachOfItsWeightsStored) {
  build_gated();

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_EQ(scales("gate", 1), 32);
  EXPECT_EQ(scales("gate", 2), 32);
  EXPECT_TRUE(find("gate").input(3).is_constant()) << "its bias stays in float";
  Floats batch = random(24 * 16, 5);
  EXPECT_GT(cosine(run(model_, {16, 24}, batch), run(result_, {16, 24}, batch)), 0.9995);
}

TEST_F(ThirdPartysLayer, StaysInFloatWithTheReasonWhenOneOfItsWeightsDoes) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4});
    auto bad = edit.constant<float>(TN_F32, {2, 4}, {1, 2, 3, INFINITY, 5, 6, 7, 8}, "v");
    Value h = acme(edit, "Gated", {x, weight(edit, "w", {4, 2}, 1), *bad}, "gate");
    Value y = acme(edit, "Linear", {h, weight(edit, "u", {8, 2}, 4)}, "last");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_EQ(why("gate"), "its weight has numbers that are not finite");
}

TEST_F(ThirdPartysLayer, TakesTheDynamicFormWhenItIsAProductOnly) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 24});
    Value a = acme(edit, "Linear", {x, weight(edit, "w", {16, 24}, 1), weight(edit, "b", {16}, 2)},
                   "plain");
    Value y = acme(edit, "LinearRelu", {a, weight(edit, "u", {8, 16}, 4)}, "active");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");

  EXPECT_EQ(count_ops("MatMulInteger"), 1u);
  EXPECT_EQ(why("active"), "operator LinearRelu has no dynamic form");
  Floats batch = random(24 * 16, 5);
  EXPECT_GT(cosine(run(model_, {16, 24}, batch), run(result_, {16, 24}, batch)), 0.998);
}

TEST_F(ThirdPartysLayer, SplitsIntoThinProducts) {
  for (const char* type : {"Linear", "LinearRelu"}) {
    ThirdPartyTest::TearDown();
    ThirdPartyTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {5, 3, 32});
      auto w = edit.constant<float>(TN_F32, {24, 32}, low_rank(24, 32, 4, 1), "w");
      Value y = acme(edit, type, {x, *w, weight(edit, "b", {24}, 3)}, "layer");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });

    ASSERT_EQ(apply("decomposer.svd", {{"rank", 4}, {"measure", false}}), "");

    EXPECT_EQ(report_["counts"]["decomposed"], 1) << type << report_.dump();
    EXPECT_EQ(result_.view().nodes().size(), 2u);
    EXPECT_EQ(find("layer").type(), type) << "what it does to the sums stays";
    EXPECT_LT(relative_difference({5, 3, 32}), 1e-5) << type;
  }
}

TEST_F(ThirdPartysLayer, SplitsIntoConvolutionsWithFewChannels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 16, 11, 10});
    // [3, 3, c, o]: each place of the window has the same 4 directions, so rank 4 on both sides.
    Floats directions = low_rank(16, 24, 4, 1), window = random(9, 7), w;
    for (float factor : window)
      for (float one : directions)
        w.push_back(factor * one);
    auto constant = edit.constant<float>(TN_F32, {3, 3, 16, 24}, w, "w");
    Value y =
        acme(edit, "Window", {x, *constant, weight(edit, "b", {24}, 3)}, "layer", {{"step", 2}});
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("decomposer.tucker2", {{"rank_in", 4}, {"rank_out", 4}, {"measure", false}}), "");

  EXPECT_EQ(report_["counts"]["decomposed"], 1) << report_.dump();
  EXPECT_EQ(count_ops("Window"), 1u);
  EXPECT_EQ(count_ops("Conv"), 2u);
  EXPECT_LT(relative_difference({2, 16, 11, 10}), 1e-5);
}

// Ours that nobody had a case for.
TEST_F(ThirdPartysLayer, MayBeATransposedConvolution) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 16, 5, 6});
    Floats directions = low_rank(16, 24, 4, 1), window = random(9, 7), w;
    for (float one : directions)
      for (float factor : window)
        w.push_back(factor * one);  // [c, o, 3, 3]
    auto constant = edit.constant<float>(TN_F32, {16, 24, 3, 3}, w, "w");
    std::vector<int64_t> two{2, 2}, pads{1, 0, 0, 1};
    Value y = node(edit, "ConvTranspose", {x, *constant, weight(edit, "b", {24}, 3)}, "layer",
                   {{"strides", two}, {"pads", pads}});
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("decomposer.tucker2", {{"rank_in", 4}, {"rank_out", 4}, {"measure", false}}), "");

  EXPECT_EQ(report_["counts"]["decomposed"], 1) << report_.dump();
  EXPECT_EQ(count_ops("ConvTranspose"), 1u);
  EXPECT_LT(relative_difference({2, 16, 5, 6}), 1e-5);
}

TEST_F(ThirdPartysLayer, StaysWholeWhereItsRowDoesNotSayHow) {
  build_gated();

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 4}, {"max_ratio", 1e9}, {"allow_slower", true}}), "");

  std::string left;
  for (const json& one : report_["left"])
    if (one["node"] == "gate") left = one["why"];
  EXPECT_THAT(left, HasSubstr("it has 2 products: expected 1"));
  EXPECT_EQ(report_["counts"]["decomposed"], 1);
}

}  // namespace
}  // namespace tenon::test

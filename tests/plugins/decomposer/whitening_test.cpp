// SPDX-License-Identifier: Apache-2.0
// Ranks and factors by what layers make of data, by one budget, and dry runs.
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

constexpr size_t kSamples = 400, kIn = 24, kOut = 16;

class DataAware : public DecomposerTest {
 protected:
  // Some features are much larger than others, and neighbours are correlated.
  Floats uneven(size_t samples, uint64_t seed) {
    Floats x = random(samples * kIn, seed);
    for (size_t s = 0; s < samples; ++s)
      for (size_t i = 0; i < kIn; ++i) {
        float* one = &x[s * kIn + i];
        *one *= i % 3 == 0 ? 5.0F : 0.3F;
        if (i > 0) *one += 0.5F * one[-1];
      }
    return x;
  }
  void build_product() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, kIn});
      Value y = node(edit, "MatMul", {x, weight(edit, "w", {kIn, kOut}, 1)}, "fc");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  // ||y - y'|| / ||y|| over these inputs.
  double output_error(const Floats& x) {
    std::vector<int64_t> shape{static_cast<int64_t>(x.size() / kIn), kIn};
    Floats a = run(model_, shape, x), b = run(result_, shape, x);
    double off = 0, all = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      off += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
      all += double{a[i]} * a[i];
    }
    return std::sqrt(off / all);
  }
};

TEST_F(DataAware, LosesLessAtTheSameRankAndSaysHowMuch) {
  build_product();
  Floats x = uneven(kSamples, 3);
  std::string data = data_of_numbers("x", {kSamples, kIn}, x);
  json options{{"rank", 6}, {"max_ratio", 2}};
  ASSERT_EQ(apply("decomposer.svd", options), "");
  double plain = output_error(x);

  options.update({{"data", data}, {"samples", kSamples}});
  ASSERT_EQ(apply("decomposer.svd", options), "");

  double aware = output_error(x);
  EXPECT_LT(aware, 0.6 * plain);
  // The dropped singular values are the error on the data, but for the ridge.
  EXPECT_NEAR(row("decomposed", "fc")["error"].get<double>(), aware, 1e-3);
  // And on inputs that it has not seen.
  EXPECT_LT(output_error(uneven(200, 8)), 0.7 * plain);
}

TEST_F(DataAware, WeightsInFloat64AreWhitenedAsWell) {
  build([&](EditView edit) {
    auto x = edit.input("x", Type(TN_F64, {-1, kIn}));
    Floats rounded = random(kIn * kOut, 1);
    auto w = edit.constant<double>(TN_F64, {kIn, kOut},
                                   std::vector<double>(rounded.begin(), rounded.end()), "w");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {*x, *w}, "fc"))), "");
  });
  json options{{"rank", 6}, {"max_ratio", 2}};
  ASSERT_EQ(apply("decomposer.svd", options), "");
  const double plain = row("decomposed", "fc")["error"];

  options["data"] = data_of_numbers("x", {kSamples, kIn}, uneven(kSamples, 3));
  ASSERT_EQ(apply("decomposer.svd", options), "");

  EXPECT_LT(row("decomposed", "fc")["error"].get<double>(), 0.6 * plain);
}

TEST_F(DataAware, NumbersThatAreNotFiniteAreRefused) {
  build_product();
  Floats x = uneven(kSamples, 3);
  x[5] = NAN;

  EXPECT_THAT(
      apply("decomposer.svd", {{"rank", 6}, {"data", data_of_numbers("x", {kSamples, kIn}, x)}}),
      HasSubstr("option data: the layers that read x get numbers that are not finite"));
}

TEST_F(DataAware, AConvolutionIsWhitenedAlongItsChannels) {
  Floats w = random(16 * 12 * 9, 5);
  build_conv({16, 12, 3, 3}, w, {-1, 12, 6, 6}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  Floats x = random(8 * 12 * 36, 6);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= i / 36 % 12 < 4 ? 6.0F : 0.2F;
  std::string data = data_of_numbers("x", {8, 12, 6, 6}, x);
  json options{{"rank_in", 4}, {"rank_out", 16}, {"max_ratio", 2}, {"allow_slower", true}};
  auto error = [&] {
    EXPECT_EQ(apply("decomposer.tucker2", options), "");
    Floats a = run(model_, {8, 12, 6, 6}, x), b = run(result_, {8, 12, 6, 6}, x);
    double off = 0, all = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      off += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
      all += double{a[i]} * a[i];
    }
    return std::sqrt(off / all);
  };
  double plain = error();
  options["data"] = data;

  EXPECT_LT(error(), 0.3 * plain);
}

// x -> fc1 (rank 5 and noise) -> Relu -> fc2 (of full rank) -> y
class Budget : public DecomposerTest {
 protected:
  void SetUp() override {
    DecomposerTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 40});
      Floats low = planted(40, 40, 5, 1), noise = random(1600, 9, 0.01F);
      for (size_t i = 0; i < low.size(); ++i)
        low[i] += noise[i];
      Value h = node(edit, "MatMul", {x, constant(edit, "w1", {40, 40}, low)}, "fc1");
      Value y = node(edit, "MatMul",
                     {node(edit, "Relu", {h}, "relu"), weight(edit, "w2", {40, 40}, 4)}, "fc2");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
};

TEST_F(Budget, IsSpentWhereTheSpectrumNeedsIt) {
  ASSERT_EQ(apply("decomposer.svd", {{"budget", 0.7}, {"max_ratio", 2}}), "");

  EXPECT_LE(report_["budget"]["left"], 0.7);
  EXPECT_GT(report_["budget"]["left"], 0.6);
  EXPECT_LE(row("decomposed", "fc1")["rank"], 8);
  EXPECT_GE(row("decomposed", "fc2").is_null() ? 20 : row("decomposed", "fc2")["rank"].get<int>(),
            12);
}

TEST_F(Budget, ThatNoRanksMeetSaysTheNearest) {
  EXPECT_THAT(
      apply("decomposer.svd", {{"budget", 0.3}, {"only", "fc1"}, {"max_ratio", 2}}),
      HasSubstr("option budget: expected a share of the FLOPs that ranks can meet, got 0.3, "
                "the nearest is 0.525"));
}

TEST_F(Budget, ADryRunChangesNothing) {
  ASSERT_EQ(apply("decomposer.svd", {{"budget", 0.7}, {"max_ratio", 2}, {"dry_run", true}}), "");

  EXPECT_EQ(report_["dry_run"], true);
  EXPECT_EQ(count_ops("MatMul"), 2u);
  EXPECT_EQ(report_["counts"]["decomposed"].get<int>() > 0, true);
}

}  // namespace
}  // namespace tenon::test

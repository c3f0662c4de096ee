// SPDX-License-Identifier: Apache-2.0
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

class Spatial : public DecomposerTest {
 protected:
  // [n_out, n_in, 3, 2]: a sum of `rank` columns of all inputs times rows of all outputs.
  Floats planted_spatial(int64_t n_out, int64_t n_in, int64_t rank) {
    Floats columns = random(static_cast<size_t>(n_in * 3 * rank), 1);
    Floats rows = random(static_cast<size_t>(n_out * 2 * rank), 2);
    Floats out;
    for (int64_t o = 0; o < n_out; ++o)
      for (int64_t i = 0; i < n_in; ++i)
        for (int64_t y = 0; y < 3; ++y)
          for (int64_t x = 0; x < 2; ++x) {
            double sum = 0;
            for (int64_t r = 0; r < rank; ++r)
              sum += double{columns[static_cast<size_t>((i * 3 + y) * rank + r)]} *
                     double{rows[static_cast<size_t>((o * 2 + x) * rank + r)]};
            out.push_back(static_cast<float>(0.1 * sum));
          }
    return out;
  }
};

TEST_F(Spatial, KeepsStridesPadsAndDilations) {
  std::vector<int64_t> strides{2, 1}, dilations{1, 2}, pads{0, 2, 1, 3};
  build_conv({16, 12, 3, 2}, planted_spatial(16, 12, 4), {2, 12, 9, 12},
             {{"strides", strides}, {"dilations", dilations}, {"pads", pads}});

  ASSERT_EQ(apply("decomposer.spatial", {{"rank", 4}}), "");

  json conv = row("decomposed", "conv");
  EXPECT_LE(conv["error"], 1e-6);
  EXPECT_EQ(conv["parameters"]["after"], 4 * (3 * 12 + 2 * 16));
  EXPECT_EQ(count_ops("Conv"), 2u);
  // 9 x 12 come in, 4 x 12 after the column, 4 x 15 at the end.
  EXPECT_EQ(conv["flops"]["after"], 2.0 * 2 * 4 * (3 * 12 * 4 * 12 + 2 * 16 * 4 * 15));
  EXPECT_LE(difference({2, 12, 9, 12}), 1e-5);
}

TEST_F(Spatial, FindsThePlantedRank) {
  build_conv({16, 12, 3, 2}, planted_spatial(16, 12, 5), {1, 12, 8, 8});
  ASSERT_EQ(apply("decomposer.spatial", json::object()), "");
  EXPECT_EQ(row("decomposed", "conv")["rank"], 5);
}

TEST_F(Spatial, TheErrorIsThatOfTheWeightThatIsLeft) {
  Floats w = random(8 * 6 * 9, 4);
  build_conv({8, 6, 3, 3}, w, {1, 6, 7, 7});
  ASSERT_EQ(apply("decomposer.spatial", {{"rank", 5}, {"max_ratio", 9}}), "");
  auto constant_of = [&](const char* name) { return result_.view().find(name).constant(); };
  Tensor columns = constant_of("w_columns"), rows = constant_of("w_rows");
  const float *a = columns.data<float>(), *b = rows.data<float>();
  double off = 0, all = 0;
  for (size_t o = 0; o < 8; ++o)
    for (size_t i = 0; i < 6; ++i)
      for (size_t y = 0; y < 3; ++y)
        for (size_t x = 0; x < 3; ++x) {
          double now = 0, was = w[((o * 6 + i) * 3 + y) * 3 + x];
          for (size_t r = 0; r < 5; ++r)
            now += double{a[(r * 6 + i) * 3 + y]} * double{b[(o * 5 + r) * 3 + x]};
          off += (was - now) * (was - now);
          all += was * was;
        }
  EXPECT_NEAR(row("decomposed", "conv")["error"].get<double>(), std::sqrt(off / all), 1e-6);
}

TEST_F(Spatial, IsWhitenedAlongTheInputChannels) {
  build_conv({16, 12, 3, 3}, random(16 * 12 * 9, 5), {-1, 12, 6, 6},
             {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  Floats x = random(8 * 12 * 36, 6);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= i / 36 % 12 < 4 ? 6.0F : 0.2F;
  json options{{"rank", 12}, {"max_ratio", 9}};
  auto error = [&] {
    EXPECT_EQ(apply("decomposer.spatial", options), "");
    Floats a = run(model_, {8, 12, 6, 6}, x), b = run(result_, {8, 12, 6, 6}, x);
    double off = 0;
    for (size_t i = 0; i < a.size(); ++i)
      off += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    return off;
  };
  double plain = error();
  options["data"] = data_of_numbers("x", {8, 12, 6, 6}, x);
  EXPECT_LT(error(), 0.1 * plain);
}

TEST_F(Spatial, LeavesWhatItCannotDo) {
  build_conv({8, 8, 3, 1}, random(8 * 8 * 3, 1), {1, 8, 9, 9});
  ASSERT_EQ(apply("decomposer.spatial", json::object()), "");
  EXPECT_THAT(why_left("conv"), HasSubstr("its window is 3x1: use decomposer.tucker2"));
}

TEST_F(Spatial, ARankOutOfRangeIsRefused) {
  build_conv({4, 3, 3, 3}, random(4 * 3 * 9, 1), {1, 3, 6, 6});
  EXPECT_THAT(apply("decomposer.spatial", {{"rank", 10}, {"only", {"conv"}}}),
              HasSubstr("rank: expected at most 9, got 10"));
}

}  // namespace
}  // namespace tenon::test

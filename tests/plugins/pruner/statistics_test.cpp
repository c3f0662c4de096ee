// SPDX-License-Identifier: Apache-2.0
// Widths that a normalization goes over: what stays is normalized by its own statistics. Masked
// means the same with all shapes as they were: statistics of the entries that stay, zeros
// elsewhere.
#include <cmath>

#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using Ints = std::vector<int64_t>;

class Statistics : public PruningTest {
 protected:
  Value norm(EditView edit, Value x, const std::string& name, int64_t width) {
    uint64_t seed = std::hash<std::string>{}(name);
    return node(edit, "LayerNormalization",
                {x, weight(edit, name + ".scale", {width}, seed),
                 weight(edit, name + ".bias", {width}, seed + 1)},
                name);
  }
  Floats numbers_of(Graph graph, std::string_view name) {
    Value constant = graph.find(name);
    const Tensor tensor = constant.constant();
    const float* data = tensor.data<float>();
    return {data, data + count(constant.type().dims)};
  }
};

// Against plain loops over the entries that stay.
TEST_F(Statistics, OfTheEntriesThatStay) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 6});
    Value y = product(edit, norm(edit, product(edit, x, "a", 6, 8), "norm", 8), "b", 8, 5);
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  const Floats batch = random(18, 5);

  for (const char* how : {"remove", "mask"}) {
    ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"apply", how}}), "");
    const json removed = group("a.matmul")["removed"];
    ASSERT_EQ(removed.size(), 4U);
    Floats got = run(result_, {3, 6}, batch);

    std::vector<size_t> left;
    for (size_t i = 0; i < 8; ++i)
      if (std::find(removed.begin(), removed.end(), i) == removed.end()) left.push_back(i);
    Graph whole = model_.view();
    Floats wa = numbers_of(whole, "a.w"), ba = numbers_of(whole, "a.b"),
           scale = numbers_of(whole, "norm.scale"), bias = numbers_of(whole, "norm.bias"),
           wb = numbers_of(whole, "b.w"), bb = numbers_of(whole, "b.b");
    for (size_t row = 0; row < 3; ++row) {
      std::vector<double> h;
      for (size_t i : left) {
        double sum = ba[i];
        for (size_t k = 0; k < 6; ++k)
          sum += double{batch[row * 6 + k]} * wa[k * 8 + i];
        h.push_back(sum);
      }
      double mean = 0, variance = 0;
      for (double one : h)
        mean += one / 4;
      for (double one : h)
        variance += (one - mean) * (one - mean) / 4;
      for (size_t o = 0; o < 5; ++o) {
        double y = bb[o];
        for (size_t j = 0; j < 4; ++j)
          y += ((h[j] - mean) / std::sqrt(variance + 1e-5) * scale[left[j]] + bias[left[j]]) *
               wb[left[j] * 5 + o];
        EXPECT_NEAR(got[row * 5 + o], y, 1e-4) << how << ", row " << row << ", " << o;
      }
    }
  }
}

// The node that stands for the one whose zeros would be counted is found as that one was.
TEST_F(Statistics, MaskedNodesKeepNameScopeAndAttributes) {
  build([&](EditView edit) {
    Value h = product(edit, input(edit, "x", {-1, 6}), "a", 6, 8);
    auto made = edit.add({.type = "LayerNormalization",
                          .inputs = {h, weight(edit, "scale", {8}, 1)},
                          .attrs = {{"epsilon", 0.25}},
                          .name = "norm",
                          .scope = "encoder.0"});
    ASSERT_TRUE(made.ok());
    ASSERT_EQ(text_of(edit.output("y", product(edit, made->output(), "b", 8, 5))), "");
  });
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"apply", "mask"}}), "");

  int found = 0;
  for (Node node : result_.view().nodes()) {
    if (!node.is("LayerNormalization")) continue;
    ++found;
    EXPECT_EQ(node.name(), "norm");
    EXPECT_EQ(node.scope(), "encoder.0");
    EXPECT_EQ(node.attr_float("epsilon", 0), 0.25);
  }
  EXPECT_EQ(found, 1);
  // As the README says: the places are stated now, and so the width stays.
  std::swap(model_, result_);
  ASSERT_EQ(apply("pruner.explain", json::object()), "");
  EXPECT_TRUE(report_["groups"].empty());
}

// A vision transformer's: patches by a convolution, a class token and positions as constants, sums
// that go around the layers, the class token read at the end.
TEST_F(Statistics, ResidualWidthGoesWithItsTokensAndPositions) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 6});
    Value cut = conv(edit, x, "patches", {16, 3, 2, 2}, {{"strides", Ints{2, 2}}});
    Value flat = node(edit, "Reshape", {cut, *edit.ints({2, 16, 9})}, "flat");
    Value rows = node(edit, "Transpose", {flat}, "rows", {{"perm", Ints{0, 2, 1}}});
    Value token = node(edit, "Expand",
                       {weight(edit, "token", {1, 1, 16}, 3), *edit.ints({2, 1, 1})}, "tokens");
    Value all = node(edit, "Concat", {token, rows}, "all", {{"axis", 1}});
    Value h = node(edit, "Add", {all, weight(edit, "position", {1, 10, 16}, 4)}, "placed");
    h = norm(edit, h, "h", 16);  // another one reads it, as in Swin
    for (int i = 0; i < 2; ++i) {
      std::string name = cat("layer", i);
      Value wide = product(edit, norm(edit, h, name + ".norm", 16), name + ".up", 16, 24);
      Value thin = product(edit, relu(edit, wide, name + ".relu"), name + ".down", 24, 16);
      h = node(edit, "Add", {h, thin}, name);
    }
    Value first = node(edit, "Gather",
                       {norm(edit, h, "last", 16), *edit.constant<int64_t>(TN_I64, {}, {0}, "at")},
                       "first", {{"axis", 1}});
    ASSERT_EQ(text_of(edit.output("y", product(edit, first, "head", 16, 5))), "");
  });

  expect_pruned_equals_masked({2, 3, 6, 6});

  EXPECT_EQ(group("patches")["channels"], 16);
  const auto kept = group("patches")["kept"].get<int64_t>();
  EXPECT_LT(kept, 8);
  EXPECT_EQ(shape_of_value("position"), (Ints{1, 10, kept}));
  EXPECT_EQ(shape_of_value("last.scale"), (Ints{kept}));
  EXPECT_EQ(shape_of_value("head.w"), (Ints{kept, 5}));
}

// The width comes from outside and goes out again.
TEST_F(Statistics, WidthsOfTheModelStay) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 8});
    Value h = node(edit, "Add", {x, product(edit, norm(edit, x, "norm", 8), "a", 8, 8)}, "sum");
    ASSERT_EQ(text_of(edit.output("y", h)), "");
  });

  ASSERT_EQ(apply("pruner.explain", json::object()), "");

  EXPECT_TRUE(report_["groups"].empty());
  EXPECT_EQ(barrier("a.matmul"), "it is of the model's input x");
}

}  // namespace
}  // namespace tenon::test

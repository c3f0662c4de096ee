// SPDX-License-Identifier: Apache-2.0
#include "plugins/third_party/third_party_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

class ThirdPartysMove : public ThirdPartyTest {
 protected:
  // Two convolutions that acme joins, and a classifier.
  void build_join(std::string_view type) {
    build([&](EditView edit) {
      Value x = input(edit, "x", {2, 3, 6, 6});
      Value a = relu(edit, conv(edit, x, "a", {8, 3, 3, 3}), "a_relu");
      Value b = relu(edit, conv(edit, x, "b", {6, 3, 3, 3}), "b_relu");
      Value all = acme(edit, type, {a, b}, "join", {{"along", 1}});
      classify(edit, all, 14);
    });
  }
};

TEST_F(ThirdPartysMove, LetsChannelsThroughByItsCoupling) {
  build_join("Join");

  expect_pruned_equals_masked({2, 3, 6, 6});

  EXPECT_LT(shape_of_value("a.w")[0], 8);
  EXPECT_LT(shape_of_value("b.w")[0], 6);
}

TEST_F(ThirdPartysMove, IsABarrierWhenItsRowSaysNothing) {
  build_join("OpaqueJoin");

  EXPECT_THAT(
      apply("pruner.structured", {{"ratio", 0.5}}),
      HasSubstr("a: join (OpaqueJoin): the operator's row has neither axes nor a coupling"));
}

TEST_F(ThirdPartysMove, LosesPairsOfHalves) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 6});
    Value a = conv(edit, x, "a", {16, 3, 3, 3});
    classify(edit, acme(edit, "Halves", {a}, "halves"), 8);
  });

  expect_pruned_equals_masked({2, 3, 6, 6});

  EXPECT_EQ(shape_of_value("a.w")[0], 2 * shape_of_value("fc.w")[1]);
}

TEST_F(ThirdPartysMove, PrunesThroughThirdPartysLayersToo) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 12});
    Value h = acme(edit, "Gated",
                   {x, weight(edit, "w", {12, 16}, 1), weight(edit, "v", {16, 12}, 2)}, "gate");
    Value y = acme(edit, "Linear", {h, weight(edit, "u", {5, 16}, 4)}, "last");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  expect_pruned_equals_masked({4, 12});

  EXPECT_LT(shape_of_value("w")[1], 16);
  EXPECT_EQ(shape_of_value("w")[1], shape_of_value("v")[0]);
}

}  // namespace
}  // namespace tenon::test

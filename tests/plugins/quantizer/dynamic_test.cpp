// SPDX-License-Identifier: Apache-2.0
#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

class Dynamic : public PassTest {
 protected:
  // x -> MatMul and Gemm (transposed, with bias) -> Add -> y
  void build_model() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 8});
      Value a = node(edit, "MatMul", {x, weight(edit, "w1", {8, 6}, 1)}, "left");
      Value b = node(edit, "Gemm", {x, weight(edit, "w2", {6, 8}, 2), weight(edit, "b2", {6}, 3)},
                     "right", {{"transB", 1}});
      ASSERT_EQ(text_of(edit.output("y", node(edit, "Add", {a, b}, "sum"))), "");
    });
  }
};

TEST_F(Dynamic, ProductsOfOneValueShareItsRounding) {
  build_model();

  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");

  EXPECT_EQ(count_ops("DynamicQuantizeLinear"), 1u);
  EXPECT_EQ(count_ops("MatMulInteger"), 2u);
  EXPECT_EQ(count_ops("MatMul") + count_ops("Gemm"), 0u);
  EXPECT_THAT(result_.view().find("w2_quantized").type().dims, ElementsAre(8, 6));
  EXPECT_EQ(report_["counts"]["quantized"], 2);
}

TEST_F(Dynamic, ProductsOfOneWeightShareIt) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 8}), w = weight(edit, "w", {8, 8}, 1);
    Value y = node(edit, "MatMul", {x, w}, "first");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {y, w}, "second"))), "");
  });
  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");

  EXPECT_EQ(reads("first_integer")[1], "w_quantized");
  EXPECT_EQ(reads("second_integer")[1], "w_quantized");
  EXPECT_EQ(report_["quantized"][1]["weight_snr_db"], report_["quantized"][0]["weight_snr_db"]);
}

TEST_F(Dynamic, AModelWithoutAProductToStoreIsRefused) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {1, 3, 4, 4});
    Value y = node(edit, "Conv", {x, weight(edit, "w", {2, 3, 1, 1}, 1)}, "conv");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  EXPECT_THAT(apply("quantizer.dynamic", json::object()),
              HasSubstr("nothing to quantize (conv: operator Conv has no dynamic form)"));
}

TEST_F(Dynamic, KeepsTheAnswers) {
  build_model();
  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");
  if (!services.op->find(ctx_, str(""), str("MatMulInteger")))
    GTEST_SKIP() << "no plugin brings MatMulInteger";

  Floats batch = random(20 * 8, 11);

  EXPECT_GE(cosine(run(model_, {20, 8}, batch), run(result_, {20, 8}, batch)), 0.999);
}

TEST_F(Dynamic, LeavesSkippedNodesAlone) {
  build_model();

  ASSERT_EQ(apply("quantizer.dynamic", {{"skip", {"Gemm"}}}), "");

  EXPECT_EQ(count_ops("Gemm"), 1u);
  EXPECT_EQ(why("right"), "in the skip list (Gemm)");
  EXPECT_THAT(apply("quantizer.dynamic", {{"skip", {"*"}}}), HasSubstr("nothing to quantize"));
}

}  // namespace
}  // namespace tenon::test

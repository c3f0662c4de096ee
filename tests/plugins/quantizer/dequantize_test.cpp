// SPDX-License-Identifier: Apache-2.0
#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

class Dequantize : public PassTest {
 protected:
  void SetUp() override {
    PassTest::SetUp();
    batch_ = random(count(shape_), 21);
  }

  size_t count_quantized() {
    size_t n = 0;
    for (const char* type : {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                             "MatMulInteger", "ConvInteger", "QLinearConv"})
      n += count_ops(type);
    return n;
  }
  void quantize(std::string_view pass, const json& options) {
    float_ = run(model_, shape_, batch_);
    ASSERT_EQ(apply(pass, options), "");
    ASSERT_GT(count_quantized(), 0u);
    model_ = std::move(result_);
  }
  void dequantize() {
    ASSERT_EQ(apply("quantizer.dequantize", json::object()), "");
    EXPECT_EQ(count_quantized(), 0u);
    EXPECT_EQ(report_["left"], json::array());
  }
  double cosine_now() { return cosine(run(result_, shape_, batch_), float_); }
  Value scalar(EditView edit, float number) {
    return *edit.constant<float>(TN_F32, {}, std::vector{number});
  }
  Value zero(EditView edit, int number) {
    return *edit.constant<uint8_t>(TN_U8, {}, std::vector{static_cast<uint8_t>(number)});
  }

  const std::vector<int64_t> shape_{2, 3, 8, 8};
  Floats batch_, float_;
};

TEST_F(Dequantize, StaticBecomesTheFloatModelWithRoundedWeights) {
  residual_cnn();
  quantize("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 5)}});
  const double quantized = cosine(run(model_, shape_, batch_), float_);
  dequantize();

  EXPECT_GT(cosine_now(), 0.9999);
  EXPECT_GT(cosine_now(), quantized);
  EXPECT_EQ(count_ops("Relu"), 2u);
  EXPECT_EQ(count_ops("Clip"), 1u)
      << "of the mean; where a Relu is, the range that begins at 0 is its own";
  EXPECT_EQ(count_ops("MaxPool"), 1u);
}

TEST_F(Dequantize, TheResultCanBeQuantizedAgain) {
  residual_cnn();
  const json options{{"data", data("x", {3, 8, 8}, 16, 5)}};
  quantize("quantizer.static", options);
  EXPECT_THAT(apply("quantizer.static", options),
              HasSubstr("or make it one by quantizer.dequantize"));
  const Floats once = run(model_, shape_, batch_);
  dequantize();
  model_ = std::move(result_);
  ASSERT_EQ(apply("quantizer.static", options), "");
  EXPECT_GT(cosine(run(result_, shape_, batch_), once), 0.9995);
}

TEST_F(Dequantize, DynamicProductsAreProductsOfFloats) {
  residual_cnn();
  quantize("quantizer.dynamic", json::object());
  dequantize();
  EXPECT_GT(cosine_now(), 0.9999);
  EXPECT_EQ(report_["roundings"], 1);
}

TEST_F(Dequantize, StoredWeightsOfFourBits) {
  residual_cnn();
  quantize("quantizer.weights", {{"bits", 4}, {"group", 8}});
  const Floats rounded = run(model_, shape_, batch_);
  dequantize();
  EXPECT_EQ(run(result_, shape_, batch_), rounded) << "nothing but weights was rounded";
  EXPECT_EQ(report_["roundings"], 0);
}

// What a quantizer writes that leaves a Relu to the range behind it: values below 0 are cut off.
TEST_F(Dequantize, ARangeThatCutsOffStays) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.01f), none = zero(edit, 0);
    Value sum = node(edit, "Add", {x, x}, "sum");
    Value stored = node(edit, "QuantizeLinear", {sum, step, none}, "stored");
    Value y = node(edit, "DequantizeLinear", {stored, step, none}, "y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  const Floats before = run(model_, shape_, batch_);
  dequantize();

  EXPECT_EQ(count_ops("Clip"), 1u);
  const Floats after = run(result_, shape_, batch_);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_NEAR(after[i], before[i], 0.00501) << "half a step";
}

TEST_F(Dequantize, ARangeOf16BitsCutsOffToo) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.0001f);
    Value none = *edit.constant<uint16_t>(TN_U16, {}, std::vector<uint16_t>{0});
    Value stored = node(edit, "QuantizeLinear", {x, step, none}, "stored");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "DequantizeLinear", {stored, step, none}, "y"))),
              "");
  });
  const Floats before = run(model_, shape_, batch_);
  dequantize();
  const Floats after = run(result_, shape_, batch_);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_NEAR(after[i], before[i], 0.0000501);
}

TEST_F(Dequantize, SignedValuesWithoutAZeroPointAreNotCutOff) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.05f);
    Value stored =
        node(edit, "QuantizeLinear", {x, step}, "stored", {{"output_dtype", any_dtype(TN_I8)}});
    ASSERT_EQ(text_of(edit.output("y", node(edit, "DequantizeLinear", {stored, step}, "y"))), "");
  });
  dequantize();
  EXPECT_EQ(count_ops("Clip"), 0u);
  EXPECT_EQ(run(result_, shape_, batch_), batch_);
}

// Of two values that one Concat joins, the Relu of one says nothing of the other.
TEST_F(Dequantize, ARangeBehindAConcatStays) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.01f), none = zero(edit, 0);
    Value first = node(edit, "Relu", {x}, "first"), second = node(edit, "Neg", {x}, "second");
    Value all = node(edit, "Concat", {first, second}, "all", {{"axis", 1}});
    Value stored = node(edit, "QuantizeLinear", {all, step, none}, "stored");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "DequantizeLinear", {stored, step, none}, "y"))),
              "");
  });
  dequantize();
  EXPECT_EQ(count_ops("Clip"), 1u);
}

// Stored zeros that Pad writes stand for another number where the zero point is not 0.
TEST_F(Dequantize, WhatWritesZerosStaysWhereTheyStandForOthers) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.1f), middle = zero(edit, 128);
    Value stored = node(edit, "QuantizeLinear", {x, step, middle}, "stored");
    Value wide = node(edit, "Pad", {stored, *edit.ints({0, 0, 1, 1, 0, 0, 1, 1})}, "wide");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "DequantizeLinear", {wide, step, middle}, "y"))),
              "");
  });
  const Floats before = run(model_, shape_, batch_);
  ASSERT_EQ(apply("quantizer.dequantize", json::object()), "");
  EXPECT_EQ(run(result_, shape_, batch_), before);
  EXPECT_EQ(report_["left"].size(), 2u);
}

TEST_F(Dequantize, ASmallConstantThatAFileMakesLargeStaysSmall) {
  build([&](EditView edit) {
    Value one = *edit.constant<int8_t>(TN_I8, {1}, std::vector<int8_t>{3});
    Value number = node(edit, "DequantizeLinear", {one, scalar(edit, 0.5f)}, "number");
    Value large = node(edit, "Expand", {number, *edit.ints({1 << 13, 1 << 13})}, "large");
    for (int i = 0; i < 40; ++i)
      large = node(edit, "Add", {large, large}, cat("twice", i));
    ASSERT_EQ(text_of(edit.output("y", node(edit, "ReduceMax", {large}, "y"))), "");
  });
  ASSERT_EQ(apply("quantizer.dequantize", json::object()), "");
  for (Value v : result_.view().constants())
    EXPECT_LT(v.type().elements(), 1000);
}

// What ONNX Runtime's dynamic quantizer makes of a fused attention, and its optimizer of a product.
TEST_F(Dequantize, ProductsThatOthersFusedWithTheirRounding) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 8}), scale = scalar(edit, 0.01f);
    auto weights = [&](int64_t rows, int64_t columns) {
      std::vector<int8_t> numbers(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<int8_t>(i * 37 % 201 - 100);
      return *edit.constant<int8_t>(TN_I8, {rows, columns}, numbers);
    };
    Value bias = *edit.constant<float>(TN_F32, {24}, std::vector<float>(24, 0.1f));
    Node rounded =
        *edit.add({.type = "DynamicQuantizeLinear", .inputs = {x}, .n_outputs = 3, .name = "r"});
    Node attention = *edit.add({.type = "QAttention",
                                .inputs = {rounded.output(0), weights(8, 24), bias,
                                           rounded.output(1), scale, Value{}, rounded.output(2)},
                                .attrs = {{"num_heads", 2}},
                                .name = "a",
                                .domain = "com.microsoft"});
    Node product = *edit.add({.type = "DynamicQuantizeMatMul",
                              .inputs = {attention.output(), weights(8, 5), scale},
                              .name = "p",
                              .domain = "com.microsoft"});
    ASSERT_EQ(text_of(edit.output("y", product.output())), "");
  });
  const std::vector<int64_t> shape{2, 3, 8};
  const Floats numbers = random(48, 9);
  const Floats before = run(model_, shape, numbers);
  dequantize();
  EXPECT_EQ(count_ops("DequantizeLinear"), 0u);
  EXPECT_EQ(report_["roundings"], 2);
  EXPECT_GT(cosine(run(result_, shape, numbers), before), 0.999);
}

TEST_F(Dequantize, OperatorsOnStoredValues) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.03f), middle = zero(edit, 128);
    std::vector<int64_t> pads{1, 1, 1, 1}, two{2, 2};
    Value stored = node(edit, "QuantizeLinear", {x, step, middle}, "stored");
    Value pool = node(edit, "MaxPool", {stored}, "pool", {{"kernel_shape", two}});
    std::vector<int8_t> weights;
    for (int i = 0; i < 4 * 3 * 3 * 3; ++i)
      weights.push_back(static_cast<int8_t>(i * 37 % 255 - 127));
    Value w = *edit.constant<int8_t>(TN_I8, {4, 3, 3, 3}, weights);
    Value none = *edit.constant<int8_t>(TN_I8, {}, std::vector<int8_t>{0});
    Value product =
        node(edit, "QLinearConv", {pool, step, middle, w, scalar(edit, 0.002f), none, step, middle},
             "product", {{"pads", pads}});
    Value y = node(edit, "DequantizeLinear", {product, step, middle}, "y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  float_ = run(model_, shape_, batch_);
  dequantize();
  EXPECT_EQ(count_ops("Conv"), 1u);
  EXPECT_EQ(count_ops("MaxPool"), 1u);
  EXPECT_GT(cosine_now(), 0.999);
}

TEST_F(Dequantize, StoredValuesThatAreResizedOrLieSideBySide) {
  build([&](EditView edit) {
    Value x = input(edit, "x", shape_), step = scalar(edit, 0.03f), middle = zero(edit, 128);
    Value stored = node(edit, "QuantizeLinear", {x, step, middle}, "stored");
    Value twice = *edit.constant<float>(TN_F32, {4}, {1, 1, 2, 2});
    Value near = node(edit, "Resize", {stored, {}, twice}, "near");
    Value mean = node(edit, "Resize", {stored, {}, twice}, "mean", {{"mode", "linear"}});
    Value all = node(edit, "Concat", {near, mean}, "all", {{"axis", 1}});
    Value y = node(edit, "DequantizeLinear", {all, step, middle}, "y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  float_ = run(model_, shape_, batch_);
  dequantize();
  EXPECT_EQ(count_ops("Resize"), 2u);
  EXPECT_GT(cosine_now(), 0.999);
}

TEST_F(Dequantize, WhatEntersInEightBitsStays) {
  build([&](EditView edit) {
    Value x = *edit.input("x", Type(TN_U8, {4}));
    Value y = node(edit, "DequantizeLinear", {x, scalar(edit, 0.5f), zero(edit, 3)}, "y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  ASSERT_EQ(apply("quantizer.dequantize", json::object()), "");
  EXPECT_EQ(count_ops("DequantizeLinear"), 1u);
  EXPECT_EQ(report_["left"][0]["op"], "DequantizeLinear");
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <map>

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

class Static : public PassTest {
 protected:
  // x [batch, 8] -> Gemm -> Relu -> Reshape -> Gemm -> y
  void build_mlp() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 8});
      Value h = node(edit, "Gemm", {x, weight(edit, "w1", {8, 16}, 1), weight(edit, "b1", {16}, 2)},
                     "fc1");
      Value r = node(edit, "Relu", {h}, "relu");
      auto shape = edit.ints({-1, 16}, "shape");
      Value flat = node(edit, "Reshape", {r, *shape}, "flat");
      Value y =
          node(edit, "Gemm", {flat, weight(edit, "w2", {4, 16}, 3), weight(edit, "b2", {4}, 4)},
               "fc2", {{"transB", 1}});
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  // Two residual blocks, a pool, a mean and a classifier.
  void build_cnn() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {2, 3, 8, 8});
      std::vector<int64_t> pads{1, 1, 1, 1}, two{2, 2};
      Attr same("pads", pads);
      Value stem =
          node(edit, "Conv", {x, weight(edit, "ws", {8, 3, 3, 3}, 1), weight(edit, "bs", {8}, 2)},
               "stem", {same});
      Value relu = node(edit, "Relu", {stem}, "stem_relu");
      Value pool = node(edit, "MaxPool", {relu}, "pool", {{"kernel_shape", two}, {"strides", two}});
      Value a =
          node(edit, "Conv", {pool, weight(edit, "wa", {8, 8, 3, 3}, 3, 0.2F)}, "conv_a", {same});
      Value ar = node(edit, "Relu", {a}, "relu_a");
      Value b =
          node(edit, "Conv", {ar, weight(edit, "wb", {8, 8, 3, 3}, 4, 0.2F)}, "conv_b", {same});
      Value sum = node(edit, "Add", {b, pool}, "sum");
      Value sr = node(edit, "Relu", {sum}, "relu_sum");
      Value c = node(edit, "Conv", {sr, weight(edit, "wc", {8, 8, 1, 1}, 5)}, "conv_c");
      Value mean = node(edit, "GlobalAveragePool", {c}, "mean");
      Value flat = node(edit, "Flatten", {mean}, "flat");
      Value y = node(edit, "Gemm",
                     {flat, weight(edit, "wf", {8, 5}, 6), weight(edit, "bf", {5}, 7)}, "fc");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
};

TEST_F(Static, AnMlpKeepsItsAnswers) {
  build_mlp();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}, {"observer", "minmax"}}),
            "");

  Floats batch = random(20 * 8, 11);
  EXPECT_GE(cosine(run(model_, {20, 8}, batch), run(result_, {20, 8}, batch)), 0.995);
  EXPECT_EQ(report_["counts"]["compute"], 2);
  EXPECT_EQ(report_["calibration"]["samples"], 64);
}

TEST_F(Static, ProductsOfActivationsAreAChoice) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 6, 8});
    std::vector<int64_t> perm{0, 2, 1};
    Value q = node(edit, "MatMul", {x, weight(edit, "wq", {8, 8}, 1)}, "q");
    Value k = node(edit, "MatMul", {x, weight(edit, "wk", {8, 8}, 2)}, "k");
    Value v = node(edit, "MatMul", {x, weight(edit, "wv", {8, 8}, 3)}, "v");
    Value transposed = node(edit, "Transpose", {k}, "transposed", {{"perm", perm}});
    Value scores = node(edit, "MatMul", {q, transposed}, "scores");
    Value scaled = node(edit, "Mul", {scores, weight(edit, "factor", {1}, 4)}, "scaled");
    Value weights = node(edit, "Softmax", {scaled}, "weights", {{"axis", -1}});
    Value context = node(edit, "MatMul", {weights, v}, "context");
    ASSERT_EQ(text_of(edit.output("y", context)), "");
  });
  const std::string samples = data("x", {6, 8}, 32, 12);

  ASSERT_EQ(apply("quantizer.static", {{"data", samples}}), "");
  EXPECT_THAT(reads("scores"), ElementsAre("q", "transposed"));
  ASSERT_EQ(apply("quantizer.static", {{"data", samples}, {"products", "scores"}}), "");
  EXPECT_THAT(reads("scores"), ElementsAre("q_dequantized", "transposed_dequantized"));
  EXPECT_THAT(reads("context"), ElementsAre("weights", "v"));
  ASSERT_EQ(apply("quantizer.static", {{"data", samples}, {"products", "all"}}), "");
  EXPECT_THAT(reads("context"), ElementsAre("weights_dequantized", "v_dequantized"));
  EXPECT_THAT(apply("quantizer.static", {{"data", samples}, {"products", "score"}}),
              HasSubstr("scores"));
}

TEST_F(Static, StoresNothingInFloatBetweenComputeNodes) {
  build_mlp();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}}), "");

  EXPECT_THAT(reads("fc1"), ElementsAre("x_dequantized", "w1_dequantized", "fc1_bias_dequantized"));
  EXPECT_THAT(reads("relu"), ElementsAre("fc1"));  // the activation stays with its product
  EXPECT_THAT(reads("flat"), ElementsAre("relu_dequantized", "shape"));
  EXPECT_THAT(reads("flat_quantized"), ElementsAre("flat", "relu_scale", "relu_zero_point"));
  EXPECT_THAT(reads("fc2"),
              ElementsAre("flat_dequantized", "w2_dequantized", "fc2_bias_dequantized"));
}

TEST_F(Static, AResidualIsAddedBeforeRounding) {
  build_cnn();

  ASSERT_EQ(
      apply("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 20)}, {"observer", "minmax"}}),
      "");

  EXPECT_THAT(reads("sum"), ElementsAre("conv_b", "pool_dequantized"));
  EXPECT_THAT(reads("relu_sum"), ElementsAre("sum"));
  EXPECT_THAT(reads("conv_c"), ElementsAre("relu_sum_dequantized", "wc_dequantized"));
  EXPECT_THAT(reads("pool_quantized"),
              ElementsAre("pool", "stem_relu_scale", "stem_relu_zero_point"));
  EXPECT_THAT(reads("mean"), ElementsAre("conv_c_dequantized"));
  EXPECT_EQ(report_["counts"]["float"], 0);
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_GE(cosine(run(model_, {2, 3, 8, 8}, batch), run(result_, {2, 3, 8, 8}, batch)), 0.99);
}

// A layer of a DenseNet: what only the Concat reads has its scale, what others read too its own,
// and nothing is rounded between the normalization and its activation.
TEST_F(Static, AConcatIsTheScaleOfWhatIsMadeForIt) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 8, 8});
    Value a = node(edit, "Conv", {x, weight(edit, "wa", {8, 3, 1, 1}, 1)}, "conv_a");
    Value b = node(edit, "Conv", {a, weight(edit, "wb", {4, 8, 1, 1}, 2)}, "conv_b");
    Value c = node(edit, "Conv", {a, weight(edit, "wc", {4, 8, 1, 1}, 3, 0.1F)}, "conv_c");
    Value all = node(edit, "Concat", {a, b, c}, "all", {{"axis", 1}});
    auto row = [&](std::string_view name, float value) {
      return *edit.constant<float>(TN_F32, {16}, Floats(16, value), name);
    };
    Value norm =
        node(edit, "BatchNormalization",
             {all, row("scale", 0.5F), row("bias", 0.2F), row("mean", 0.1F), row("variance", 1.5F)},
             "norm");
    Value relu = node(edit, "Relu", {norm}, "relu");
    Value y = node(edit, "Conv", {relu, weight(edit, "wy", {4, 16, 1, 1}, 4)}, "conv_y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(
      apply("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 20)}, {"observer", "minmax"}}),
      "");

  EXPECT_EQ(reads("conv_b_quantized")[1], reads("conv_c_quantized")[1]);
  EXPECT_EQ(reads("all_quantized")[1], reads("conv_c_quantized")[1]);
  EXPECT_NE(reads("conv_a_quantized")[1], reads("all_quantized")[1]);
  EXPECT_EQ(reads("relu")[0], "norm");
  EXPECT_THAT(reads("conv_y"), ElementsAre("relu_dequantized", "wy_dequantized"));
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_GE(cosine(run(model_, {2, 3, 8, 8}, batch), run(result_, {2, 3, 8, 8}, batch)), 0.99);
}

// The larger of two numbers is an activation as good as any other: max(x, 0.1 x).
TEST_F(Static, MaxAsAnActivationStaysWithItsProduct) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 8});
    Value h = node(edit, "MatMul", {x, weight(edit, "w1", {8, 16}, 1)}, "fc1");
    Value r = node(edit, "Max", {h, weight(edit, "floor", {1}, 2, 0)}, "max");
    Value g = node(edit, "MatMul", {r, weight(edit, "w2", {16, 8}, 3)}, "fc2");
    Value low = node(edit, "Mul", {g, weight(edit, "slope", {1}, 4, 0.1F)}, "low");
    Value leaky = node(edit, "Max", {g, low}, "leaky");
    Value p = node(edit, "PRelu", {leaky, weight(edit, "slopes", {8}, 5)}, "prelu");
    Value y = node(edit, "MatMul", {p, weight(edit, "w3", {8, 4}, 6)}, "fc3");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}, {"observer", "minmax"}}),
            "");

  EXPECT_EQ(report_["counts"]["float"], 0);
  EXPECT_THAT(reads("max"), ElementsAre("fc1", "floor"));
  EXPECT_THAT(reads("fc2"), ElementsAre("max_dequantized", "w2_dequantized"));
  Floats batch = random(20 * 8, 11);
  EXPECT_GE(cosine(run(model_, {20, 8}, batch), run(result_, {20, 8}, batch)), 0.995);
}

TEST_F(Static, WeightsHaveAScalePerOutputChannel) {
  build_mlp();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}}), "");

  auto shape = [&](const char* name) { return result_.view().find(name).type().dims; };
  EXPECT_THAT(shape("w1_scale"), ElementsAre(16));
  EXPECT_THAT(shape("w2_scale"), ElementsAre(4));  // transB: the channel is axis 0
  Tensor numbers = result_.view().find("w2_quantized").constant();
  EXPECT_EQ(dtype_of(numbers.dl()), TN_I8);
  for (int64_t i = 0; i < element_count(numbers.dl()); ++i)
    EXPECT_GE(numbers.data<int8_t>()[i], -127);
  for (Node n : result_.view().nodes()) {
    if (n.name() == "w1_dequantized") {
      EXPECT_EQ(n.attr_int("axis", -1), 1);
    } else if (n.name() == "w2_dequantized") {
      EXPECT_EQ(n.attr_int("axis", -1), 0);
    }
  }
}

// As a layer of a traced network is before constants are folded.
TEST_F(Static, AWeightThatIsComputedFromConstantsIsNamed) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 8});
    Value transposed = node(edit, "Transpose", {weight(edit, "w", {4, 8}, 1)}, "transposed");
    Value y = node(edit, "MatMul", {x, transposed}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  EXPECT_THAT(apply("quantizer.static", {{"data", data("x", {3, 8}, 16, 10)}}),
              HasSubstr("fc: its weight is computed from constants: apply fusion.default first"));
}

TEST_F(Static, ASkippedNodeAndWhatItAloneJoinsStayInFloat) {
  build_mlp();

  EXPECT_THAT(
      apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}, {"skip", {"fc?"}}}),
      HasSubstr("nothing to quantize (fc1: in the skip list (fc?); fc2: in the skip list (fc?))"));
  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)}, {"skip", {"fc1"}}}), "");

  EXPECT_EQ(why("fc1"), "in the skip list (fc1)");
  EXPECT_EQ(why("relu"), "reads fc1, which is float");
  EXPECT_THAT(reads("fc1"), ElementsAre("x", "w1", "b1"));
  EXPECT_THAT(reads("fc2")[0], "flat_dequantized");
}

TEST_F(Static, SignedActivationsAreSymmetric) {
  build_mlp();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 64, 10)},
                                       {"activations", "s8"},
                                       {"observer", "minmax"},
                                       {"bias", "float32"},
                                       {"per_channel", false}}),
            "");

  Tensor zero = result_.view().find("x_zero_point").constant();
  EXPECT_EQ(dtype_of(zero.dl()), TN_I8);
  EXPECT_EQ(*zero.data<int8_t>(), 0);
  EXPECT_EQ(reads("fc1")[2], "b1");
  EXPECT_TRUE(result_.view().find("w1_scale").type().dims.empty());
  Floats batch = random(20 * 8, 11);
  EXPECT_GE(cosine(run(model_, {20, 8}, batch), run(result_, {20, 8}, batch)), 0.99);
}

TEST_F(Static, TheReportSaysHowBiasesAreStoredWhereThereAreAny) {
  build_cnn();

  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 20)}}), "");

  std::map<std::string, std::string> biases;
  for (const json& row : report_["quantized"])
    if (row.contains("bias")) biases[row["node"]] = row["bias"];
  EXPECT_THAT(biases, ElementsAre(testing::Pair("fc", "int32"), testing::Pair("stem", "int32")));
}

TEST_F(Static, TheSameDataGivesTheSameModel) {
  build_cnn();
  std::string first;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {3, 8, 8}, 16, 20)}}), "");
    StringSink text;
    ASSERT_EQ(text_of(Status(services.graph->print(result_.get(), TN_PRINT_DATA, text.get()))), "");
    if (i == 0) first = text.text;
    EXPECT_TRUE(first == text.text);
  }
}

TEST_F(Static, RefusesNanInCalibrationByValueAndSample) {
  build_mlp();
  Floats numbers = random(16 * 8, 1);
  numbers[12 * 8] = std::numeric_limits<float>::quiet_NaN();
  std::string path = data_of_numbers("x", {16, 8}, numbers);

  EXPECT_THAT(apply("quantizer.static", {{"data", path}, {"batch", 4}}),
              HasSubstr("value x: 1 of 32 numbers are not finite in sample 12 ("));
  EXPECT_EQ(apply("quantizer.static", {{"data", path}, {"non_finite", "ignore"}}), "");
}

TEST_F(Static, RefusesDataThatDoesNotFit) {
  build_mlp();

  EXPECT_THAT(
      apply("quantizer.static", {{"data", data("pixels", {9}, 4, 1)}}),
      HasSubstr("no field for x (the data set has pixels float32[9]; the model wants x float32["));
  EXPECT_THAT(apply("quantizer.static", {{"data", data_of_numbers("x", {0, 8}, {})}}),
              HasSubstr("empty data set"));
  EXPECT_THAT(apply("quantizer.static", {{"data", data("x", {9}, 4, 1)}}),
              HasSubstr("field x: the model wants float32["));
  EXPECT_THAT(apply("quantizer.static", {{"data", "nothing.npz"}}), HasSubstr("nothing.npz"));
  EXPECT_THAT(apply("quantizer.static", json::object()), HasSubstr("option data"));
}

// The model is for batches of ten: whether the data set or the option is too small is
// distinguished.
TEST_F(Static, SaysWhichOfDataAndSamplesIsTooSmall) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {10, 8});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {8, 4}, 1)}, "y");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  EXPECT_THAT(apply("quantizer.static", {{"data", data("x", {8}, 30, 1)}, {"samples", 8}}),
              HasSubstr("option samples: the model wants 10 samples at once: expected at least 10, "
                        "got 8"));
  EXPECT_THAT(apply("quantizer.static", {{"data", data("x", {8}, 9, 1)}, {"samples", 8}}),
              HasSubstr("the model wants 10 samples at once, the data set has 9"));
  EXPECT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 30, 1)}, {"samples", 10}}), "");
}

TEST_F(Static, NamesTheObserversThatThereAre) {
  build_mlp();

  std::string text =
      apply("quantizer.static", {{"data", data("x", {8}, 4, 1)}, {"observer", "entrop"}});

  EXPECT_THAT(text, HasSubstr("option observer: expected one of"));
  EXPECT_THAT(text, HasSubstr("entropy"));
  EXPECT_THAT(text, HasSubstr("got 'entrop'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'quantizer.observer.entropy'?"));
}

TEST_F(Static, RefusesAModelThatIsQuantizedAlready) {
  build_mlp();
  ASSERT_EQ(apply("quantizer.static", {{"data", data("x", {8}, 4, 1)}}), "");
  model_ = std::move(result_);

  EXPECT_THAT(apply("quantizer.static", {{"data", data("x", {8}, 4, 1)}}),
              HasSubstr("already quantized"));
}

TEST_F(Static, WeightsAloneNeedNoData) {
  build_cnn();

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_EQ(count_ops("QuantizeLinear"), 0u);
  EXPECT_EQ(count_ops("DequantizeLinear"), 5u);
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_GE(cosine(run(model_, {2, 3, 8, 8}, batch), run(result_, {2, 3, 8, 8}, batch)), 0.999);
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// Weights in 8 bits of nodes that compute in float.
#include "tenon/sdk/decibels.hpp"

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

class Storage : public PassTest {
 protected:
  // Rows of a table, chosen by constant numbers, times x.
  void build_lookup(std::vector<int64_t> table, int64_t axis) {
    build([&](EditView edit) {
      Value x = input(edit, "x", {3, 48});
      auto at = edit.ints({1, 40, 7});
      ASSERT_TRUE(at.ok());
      Value rows = node(edit, "Gather", {weight(edit, "table", std::move(table), 1), *at}, "rows",
                        {{"axis", axis}});
      if (axis == 1) rows = node(edit, "Transpose", {rows}, "transposed");
      ASSERT_EQ(text_of(edit.output("y", node(edit, "Mul", {x, rows}, "product"))), "");
    });
  }
  // qat and convert store what static does of a looked-up table in front of a product.
  void expect_converted_as_static(const json& skip, size_t n_stored) {
    build([&](EditView edit) {
      auto at = edit.ints({1, 40, 7});
      ASSERT_TRUE(at.ok());
      Value rows = node(edit, "Gather", {weight(edit, "table", {64, 48}, 1), *at}, "rows");
      Value x = node(edit, "Mul", {input(edit, "x", {3, 48}), rows}, "scaled");
      Value y = node(edit, "MatMul", {x, weight(edit, "w", {48, 32}, 2)}, "product");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
    const json given{{"data", data("x", {48}, 12, 3)}, {"skip", skip}};
    ASSERT_EQ(apply("quantizer.static", given), "");
    const json stored = report_["stored"];
    EXPECT_EQ(stored.size(), n_stored);
    ASSERT_EQ(apply("quantizer.qat", given), "");
    EXPECT_EQ(result_.view().find("table").dtype(), uint32_t{TN_F32});
    std::swap(model_, result_);
    ASSERT_EQ(apply("quantizer.convert", json::object()), "");
    EXPECT_EQ(report_["stored"], stored);
    EXPECT_EQ(result_.view().find("table_quantized") ? 1u : 0u, n_stored);
  }
};

TEST_F(Storage, TablesKeepAScaleForEachRow) {
  build_lookup({64, 48}, 0);

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_EQ(result_.view().find("table_quantized").dtype(), uint32_t{TN_I8});
  EXPECT_EQ(result_.view().find("table_scale").type().dims, (std::vector<int64_t>{64, 1}));
  EXPECT_FALSE(result_.view().find("table"));
  ASSERT_EQ(report_["stored"].size(), 1u);
  EXPECT_EQ(report_["stored"][0]["node"], "rows");
  EXPECT_GT(report_["stored"][0]["weight_snr_db"], 35.0);
}

TEST_F(Storage, TablesAnswerAsBefore) {
  build_lookup({64, 48}, 0);
  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");

  Floats x = random(3 * 48, 9);

  EXPECT_GT(cosine(run(model_, {3, 48}, x), run(result_, {3, 48}, x)), 0.9998);
}

TEST_F(Storage, ARowAxisMayBeCountedFromTheEnd) {
  build_lookup({64, 48}, -2);

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  Floats x = random(3 * 48, 9);
  EXPECT_EQ(report_["stored"].size(), 1u);
  EXPECT_GT(cosine(run(model_, {3, 48}, x), run(result_, {3, 48}, x)), 0.9998);
}

TEST_F(Storage, TablesOfAnotherAxisStay) {
  build_lookup({48, 64}, 1);

  EXPECT_THAT(apply("quantizer.weights", json::object()), HasSubstr("nothing to quantize"));
}

TEST_F(Storage, SkippedTablesStay) {
  build_lookup({64, 48}, 0);
  EXPECT_THAT(apply("quantizer.weights", {{"skip", {"rows"}}}), HasSubstr("nothing to quantize"));
}

// As the transforms of a signal in windows: one constant matrix times each of a batch.
TEST_F(Storage, ConstantsOnTheLeftOfABatchGetRows) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {3, 48, 8});
    Value y = node(edit, "MatMul", {weight(edit, "basis", {32, 48}, 1), x}, "product");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  for (const char* pass : {"quantizer.weights", "quantizer.dynamic"}) {
    ASSERT_EQ(apply(pass, json::object()), "") << pass;

    EXPECT_EQ(result_.view().find("basis_quantized").dtype(), uint32_t{TN_I8});
    EXPECT_EQ(result_.view().find("basis_scale").type().dims, (std::vector<int64_t>{32}));
    Floats x = random(3 * 48 * 8, 9);
    EXPECT_GT(cosine(run(model_, {3, 48, 8}, x), run(result_, {3, 48, 8}, x)), 0.9998) << pass;
  }
}

// A table of blocks stays in float; a constant on the left of a product is stored.
TEST_F(Storage, SensitivityMeasuresWhatStaticStores) {
  build([&](EditView edit) {
    auto at = edit.ints({1, 40, 7});
    ASSERT_TRUE(at.ok());
    Value rows = node(edit, "Gather", {weight(edit, "table", {64, 4, 12}, 1), *at}, "rows");
    Value flat = node(edit, "Flatten", {rows}, "flat");
    Value scaled = node(edit, "Mul", {input(edit, "x", {3, 48}), flat}, "scaled");
    Value product = node(edit, "MatMul", {scaled, weight(edit, "w", {48, 32}, 2)}, "product");
    Value y = node(edit, "MatMul", {weight(edit, "basis", {96, 3}, 3), product}, "transform");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  const json given{{"data", data("x", {48}, 12, 3)}};
  std::vector<std::string> stored, measured;

  ASSERT_EQ(apply("quantizer.static", given), "");
  for (const json& one : report_["stored"])
    stored.push_back(one["node"]);
  ASSERT_EQ(apply("quantizer.sensitivity", given), "");
  for (const json& one : report_["layers"])
    if (one["role"] == "stored") measured.push_back(one["node"]);

  EXPECT_EQ(stored, std::vector<std::string>{"transform"});
  EXPECT_EQ(measured, stored);
}

TEST_F(Storage, RecurrentWeightsGetChannels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 1, 16});
    Value w = weight(edit, "w", {1, 64, 16}, 1), r = weight(edit, "r", {1, 64, 16}, 2);
    auto lstm = edit.add({.type = "LSTM",
                          .inputs = {x, w, r},
                          .attrs = {{"hidden_size", 16}},
                          .n_outputs = 1,
                          .name = "lstm"});
    ASSERT_TRUE(lstm.ok());
    ASSERT_EQ(text_of(edit.output("y", lstm->output())), "");
  });
  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_THAT(reads("lstm"), testing::ElementsAre("x", "w_dequantized", "r_dequantized"));
  EXPECT_EQ(result_.view().find("w_scale").type().dims, (std::vector<int64_t>{64}));
  Floats x = random(4 * 16, 9);
  EXPECT_GT(cosine(run(model_, {4, 1, 16}, x), run(result_, {4, 1, 16}, x)), 0.999);
}

TEST_F(Storage, ConvertStoresWhatTrainingLeftInFloat) {
  expect_converted_as_static(json::array(), 1);
}

TEST_F(Storage, ConvertLeavesWhatTrainingWasAskedToLeave) {
  expect_converted_as_static({"rows"}, 0);
}

// Inputs in three units: weights of the large ones are small. One scale a row leaves those nothing.
TEST_F(Storage, RecurrentWeightsKeepTheDigitsOfSmallColumns) {
  Floats w = random(64 * 16, 1), x = random(4 * 16, 9);
  for (size_t k = 0; k < w.size(); ++k) {
    const float unit = k % 16 < 8 ? 1 : k % 16 < 12 ? 300 : 3000;
    w[k] /= unit;
    if (k < x.size()) x[k] *= unit;
  }
  build([&](EditView edit) {
    Value in = input(edit, "x", {4, 1, 16});
    auto wide = edit.constant<float>(TN_F32, {1, 64, 16}, w, "w");
    Value r = weight(edit, "r", {1, 64, 16}, 2);
    auto lstm = edit.add({.type = "LSTM",
                          .inputs = {in, *wide, r},
                          .attrs = {{"hidden_size", 16}},
                          .n_outputs = 1,
                          .name = "lstm"});
    ASSERT_TRUE(lstm.ok());
    ASSERT_EQ(text_of(edit.output("y", lstm->output())), "");
  });

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_THAT(reads("lstm"), testing::ElementsAre("x", "w_scaled", "r_dequantized"));
  EXPECT_EQ(result_.view().find("w_columns").type().dims, (std::vector<int64_t>{16}));
  EXPECT_EQ(report_["stored"][0]["columns"], true);
  EXPECT_GT(cosine(run(model_, {4, 1, 16}, x), run(result_, {4, 1, 16}, x)), 0.9999);
}

TEST_F(Storage, AMatrixOnTheLeftIsStored) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {32, 4});
    Value y = node(edit, "MatMul", {weight(edit, "w", {40, 32}, 1), x}, "transform");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  ASSERT_EQ(apply("quantizer.dynamic", json::object()), "");

  EXPECT_THAT(reads("transform"), testing::ElementsAre("w_dequantized", "x"));
  EXPECT_EQ(result_.view().find("w_scale").type().dims, (std::vector<int64_t>{40}));
  Floats x = random(32 * 4, 9);
  EXPECT_GT(cosine(run(model_, {32, 4}, x), run(result_, {32, 4}, x)), 0.9998);
}

TEST_F(Storage, BodiesAreStoredToo) {
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  OwnedGraph body = OwnedGraph::take(raw);
  auto inner = Edit::begin(raw);
  Value h = input(*inner, "h", {2, 32});
  Value product = node(*inner, "MatMul", {h, weight(*inner, "w", {32, 32}, 3)}, "product");
  ASSERT_EQ(text_of(inner->output("o", product)), "");
  ASSERT_EQ(text_of(inner->commit()), "");
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 32});
    auto yes = edit.constant<uint8_t>(TN_BOOL, {}, std::vector<uint8_t>{1});
    Value y =
        node(edit, "If", {*yes, x}, "choice",
             {{"then_branch", any_graph(raw)}, {"else_branch", any_graph(raw)}, {"captures", 1}});
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("quantizer.weights", json::object()), "");

  EXPECT_EQ(report_["stored"].size(), 2u);
  EXPECT_EQ(report_["stored"][0]["node"], "product");
  Floats x = random(2 * 32, 9);
  EXPECT_GT(cosine(run(model_, {2, 32}, x), run(result_, {2, 32}, x)), 0.9998);
}

// So the factors that awq takes are best for the rounding that follows.
TEST_F(Storage, BlocksLoseWhatAwqFoundThatTheyLose) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {16, 32});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {32, 24}, 1)}, "product");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  ASSERT_EQ(apply("quantizer.awq", {{"data", data("x", {32}, 16, 5)}, {"gain", 100}}), "");
  const double found = report_["layers"][0]["snr_db"];
  ASSERT_EQ(apply("quantizer.weights", {{"bits", 4}}), "");

  const Floats x = random(16 * 32, 5);
  const Floats right = run(model_, {16, 32}, x), rounded = run(result_, {16, 32}, x);
  double signal = 0, noise = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    signal += double{right[i]} * right[i];
    noise += std::pow(double{right[i]} - rounded[i], 2);
  }
  EXPECT_NEAR(decibels(signal, noise), found, 0.01);
}

}  // namespace
}  // namespace tenon::test

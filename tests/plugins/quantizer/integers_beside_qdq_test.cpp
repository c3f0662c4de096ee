// SPDX-License-Identifier: Apache-2.0
// quantizer.integers beside the model that it was made of, both on `reference`: at most one step of
// what the last QuantizeLinear stores apart, or refused.
#include "plugins/quantizer/beside_qdq.hpp"

namespace tenon::test {
namespace {

// MatMul, bias, residual: three sums of very different steps, none of them rounded between.
TEST_F(IntegersBesideQdq, SumsOfSums) {
  const double steps = apart({4, 384}, random(4 * 384, 1), 0.1F, [&](EditView edit, Value x) {
    Value d = stored(edit, x, 0.02F);
    Value m = op(edit, "MatMul", {d, weights(edit, 384, Floats(384, 0.0005F), 2)});
    Value biased = op(edit, "Add", {m, floats(edit, {384}, random(384, 3))});
    Value sum = op(edit, "Add", {op(edit, "Add", {biased, d}), d});
    return stored(edit, sum, 0.1F);
  });
  EXPECT_GE(steps, 0) << refused_;
  EXPECT_LE(steps, kOneStep);
}

// A known summand that is far larger in one place leaves the others what they are.
TEST_F(IntegersBesideQdq, ZerosAndOneLargeNumberAsSummands) {
  for (const Floats& summand : {Floats{0, 0, 0}, Floats{0.03F, 1e6F, -0.05F}}) {
    const double steps = apart({16, 3}, random(48, 1, 0.05F), 0.002F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.001F);
      return stored(edit, op(edit, "Add", {d, floats(edit, {3}, summand)}), 0.002F);
    });
    EXPECT_GE(steps, 0) << refused_;
    EXPECT_LE(steps, kOneStep);
  }
}

// The own steps of one channel are tiny, and its bias is many of them.
TEST_F(IntegersBesideQdq, AChannelWithATinyScale) {
  for (float tiny : {3e-4F, 1e-7F, 1e-9F, 1e-22F}) {
    const double steps = apart({4, 384}, random(4 * 384, 1), 0.05F, [&](EditView edit, Value x) {
      Floats scale(64, 3e-4F);
      scale[5] = tiny;
      Value d = stored(edit, x, 0.03F);
      Value m =
          op(edit, "Gemm", {d, weights(edit, 384, scale, 2), floats(edit, {64}, Floats(64, 0.5F))});
      Value part = op(edit, "Slice", {d, ints(edit, {0}), ints(edit, {64}), ints(edit, {1})});
      return stored(edit, op(edit, "Add", {m, part}), 0.05F);
    });
    if (tiny < 1e-8F) {
      EXPECT_THAT(refused_, HasSubstr("int32")) << tiny;
      continue;
    }
    EXPECT_GE(steps, 0) << refused_;
    EXPECT_LE(steps, kOneStep) << tiny;
  }
}

TEST_F(IntegersBesideQdq, MaxAndMinOfThree) {
  for (const char* type : {"Max", "Min"}) {
    const double steps = apart({2, 4}, random(8, 1), 0.05F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.05F, 100, TN_U8);
      Value m = op(edit, type, {d, floats(edit, {}, {0.5F}), floats(edit, {}, {-0.5F})});
      return stored(edit, m, 0.05F);
    });
    EXPECT_LE(steps, kOneStep) << type;
    if (steps < 0) {
      EXPECT_THAT(refused_, HasSubstr("than two"));
    }
  }
}

// Of numbers that fall with their index.
TEST_F(IntegersBesideQdq, ComparesNumbersOfATable) {
  const auto half = [&](EditView edit, Value x, int64_t from) {
    return op(edit, "Slice", {x, ints(edit, {from}), ints(edit, {from + 4}), ints(edit, {2})});
  };
  const std::pair<const char*, Body> bodies[] = {
      {"Max", [&](EditView e, Value v) { return op(e, "Max", {half(e, v, 0), half(e, v, 4)}); }},
      {"Min", [&](EditView e, Value v) { return op(e, "Min", {half(e, v, 0), half(e, v, 4)}); }},
      {"ReduceMax", [&](EditView e, Value v) { return op(e, "ReduceMax", {v, ints(e, {2})}); }},
      {"MaxPool", [&](EditView e, Value v) {
         std::vector<int64_t> two{2};
         return op(e, "MaxPool", {v}, {{"kernel_shape", two}, {"strides", two}});
       }}};
  for (const auto& [name, body] : bodies) {
    const double steps = apart({1, 2, 8}, random(16, 1), 0.05F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.05F, 100, TN_U8);
      return stored(edit, body(edit, op(edit, "Neg", {d})), 0.05F);
    });
    EXPECT_LE(steps, kOneStep) << name;
    if (name != std::string("MaxPool")) {
      EXPECT_GE(steps, 0) << name << refused_;
    }
  }
}

// Both halves stay integers: the node that is added again has as many outputs.
TEST_F(IntegersBesideQdq, SplitsIntoIntegers) {
  const double steps = apart({2, 8}, random(16, 1), 0.05F, [&](EditView edit, Value x) {
    Value d = stored(edit, x, 0.05F, 100, TN_U8);
    auto halves = edit.add({.type = "Split",
                            .inputs = {d},
                            .attrs = {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}},
                            .n_outputs = 2,
                            .name = "halves"});
    EXPECT_TRUE(halves.ok());
    return stored(edit, op(edit, "Add", {halves->output(0), halves->output(1)}), 0.05F);
  });
  EXPECT_GE(steps, 0) << refused_;
  EXPECT_LE(steps, kOneStep);
}

TEST_F(IntegersBesideQdq, PadsATableWithZeros) {
  const double steps = apart({2, 4}, random(8, 1), 0.05F, [&](EditView edit, Value x) {
    Value d = stored(edit, x, 0.01F, 100, TN_U8);
    Value padded = op(edit, "Pad", {op(edit, "Neg", {d}), ints(edit, {0, 1, 0, 1})});
    return stored(edit, padded, 0.05F);
  });
  EXPECT_GE(steps, 0) << refused_;
  EXPECT_LE(steps, kOneStep);
}

// Where 0 is stored as 100, an operator that writes zeros would write -1.
TEST_F(IntegersBesideQdq, WritesNoZerosThatAreStoredOtherwise) {
  const double steps = apart({4, 4}, random(16, 1), 0.01F, [&](EditView edit, Value x) {
    return stored(edit, op(edit, "Trilu", {stored(edit, x, 0.01F, 100, TN_U8)}), 0.01F);
  });
  EXPECT_LE(steps, kOneStep);
}

// [rows, 1] is added along the columns.
TEST_F(IntegersBesideQdq, AColumnAsSummandOfAGemm) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 1}, {1, 4}, {4}}) {
    const double steps = apart({4, 32}, random(128, 1), 0.05F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.02F);
      Value m = op(edit, "Gemm",
                   {d, weights(edit, 32, Floats(4, 5e-4F), 2), floats(edit, dims, {0, 1, 2, 3})});
      return stored(edit, m, 0.05F);
    });
    EXPECT_LE(steps, kOneStep);
    EXPECT_EQ(steps < 0, dims[0] == 4 && dims.size() == 2);
  }
}

TEST_F(IntegersBesideQdq, MeansOfAllAxesWhereNoneIsNamed) {
  for (int stays : {0, 1}) {
    const double steps = apart({2, 4}, random(8, 1), 0.01F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.01F);
      return stored(edit,
                    op(edit, "ReduceMean", {d, ints(edit, {})}, {{"noop_with_empty_axes", stays}}),
                    0.01F);
    });
    EXPECT_GE(steps, 0) << refused_;
    EXPECT_LE(steps, kOneStep) << stays;
  }
}

// The steps of the result are finer than those of a table over [-16, 16].
TEST_F(IntegersBesideQdq, FunctionsOfSumsInFineSteps) {
  for (const char* type : {"Tanh", "HardSwish", "Neg", "Sigmoid", "Exp"}) {
    for (float step : {0.0004F, 0.002F, 0.03F}) {
      const double steps =
          apart({4, 384}, random(4 * 384, 1, 0.02F), step, [&](EditView edit, Value x) {
            Value d = stored(edit, x, 0.0005F);
            Value m = op(edit, "MatMul", {d, weights(edit, 384, Floats(16, 1e-4F), 2)});
            return stored(edit, op(edit, type, {m}), step);
          });
      EXPECT_GE(steps, 0) << type << refused_;
      EXPECT_LE(steps, kOneStep) << type << " in steps of " << step;
    }
  }
}

// A scale of 0 stores nothing that integers could say.
TEST_F(IntegersBesideQdq, RefusesAScaleOfZero) {
  const double steps = apart({4, 32}, random(128, 1), 1, [&](EditView edit, Value x) {
    Value d = stored(edit, x, 0.02F);
    Value m = op(edit, "MatMul", {d, weights(edit, 32, Floats(4, 5e-4F), 2)});
    return stored(edit, op(edit, "Tanh", {m}), 0);
  });
  EXPECT_LT(steps, 0);
  EXPECT_THAT(refused_, HasSubstr("Tanh"));
}

// A factor for each channel is no function of one number.
TEST_F(IntegersBesideQdq, FactorsForEachPlace) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{8}, {8, 1}, {1, 1, 1, 1}}) {
    const double steps = apart({2, 8, 8}, random(128, 1), 0.02F, [&](EditView edit, Value x) {
      Value d = stored(edit, x, 0.02F);
      Floats factors = random(count(dims), 2);
      return stored(edit, op(edit, "Mul", {d, floats(edit, dims, factors)}), 0.02F);
    });
    EXPECT_LE(steps, kOneStep) << dims.size();
  }
}

// The unrounded sum of a residual, averaged over many places.
TEST_F(IntegersBesideQdq, MeansOfSums) {
  const double steps = apart({1, 2, 64, 64}, random(8192, 1), 4e-4F, [&](EditView edit, Value x) {
    Value d = stored(edit, x, 0.02F), e = stored(edit, x, 0.03F);
    Value sum = op(edit, "Add", {op(edit, "Add", {d, e}), floats(edit, {}, {0.01F})});
    return stored(edit, op(edit, "GlobalAveragePool", {sum}), 4e-4F);
  });
  EXPECT_GE(steps, 0) << refused_;
  EXPECT_LE(steps, kOneStep);
}

}  // namespace
}  // namespace tenon::test

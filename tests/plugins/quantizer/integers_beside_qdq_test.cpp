// SPDX-License-Identifier: Apache-2.0
// quantizer.integers beside the model that it was made of, both on `reference`: at most one step of
// what the last QuantizeLinear stores apart, or refused.
#include <functional>
#include <random>

#include "plugins/quantizer/text_models.hpp"

namespace tenon::test {
namespace {

class IntegersBesideQdq : public TextModels {
 protected:
  using Body = std::function<Value(EditView, Value)>;

  template <class T>
  Value known(EditView edit, uint32_t dtype, std::vector<int64_t> dims, std::vector<T> numbers) {
    auto made = edit.constant<T>(dtype, dims, numbers);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : Value{};
  }
  Value floats(EditView edit, std::vector<int64_t> dims, Floats numbers) {
    return known<float>(edit, TN_F32, std::move(dims), std::move(numbers));
  }
  Value ints(EditView edit, std::vector<int64_t> numbers) {
    const auto n = static_cast<int64_t>(numbers.size());
    return known<int64_t>(edit, TN_I64, {n}, std::move(numbers));
  }
  Value stored(EditView edit, Value x, float scale, uint8_t zero = 0, uint32_t dtype = TN_I8) {
    Value step = floats(edit, {}, {scale}), point = known<uint8_t>(edit, dtype, {}, {zero});
    Value q = node(edit, "QuantizeLinear", {x, step, point}, cat("stored", ++made_));
    return node(edit, "DequantizeLinear", {q, step, point}, cat("read", ++made_));
  }
  // int8 weights of [in, out] behind a DequantizeLinear.
  Value weights(EditView edit, int64_t in, const Floats& scale, uint64_t seed) {
    const auto out = static_cast<int64_t>(scale.size());
    std::vector<int8_t> codes;
    for (float x : random(static_cast<size_t>(in * out), seed, 40))
      codes.push_back(static_cast<int8_t>(std::clamp(x, -127.0F, 127.0F)));
    return node(edit, "DequantizeLinear",
                {known<int8_t>(edit, TN_I8, {in, out}, codes), floats(edit, {out}, scale)},
                cat("weight", ++made_), {{"axis", 1}});
  }
  Value op(EditView edit, std::string_view type, std::vector<Value> in, std::vector<Attr> a = {}) {
    return node(edit, type, std::move(in), cat("n", ++made_), std::move(a));
  }
  void make(const std::vector<int64_t>& shape, const Body& body) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    model_ = OwnedGraph::take(raw);
    build([&](EditView edit) {
      ASSERT_EQ(text_of(edit.output("y", body(edit, input(edit, "x", shape)))), "");
    });
  }
  // The largest distance to the model that it was made of, in steps; negative: refused.
  double apart(const std::vector<int64_t>& shape, const Floats& x, float step, const Body& body) {
    make(shape, body);
    const Floats stated = run(model_, shape, x);
    refused_ = apply("quantizer.integers", json::object());
    if (!refused_.empty()) return -1;
    const Floats got = run(result_, shape, x);
    EXPECT_EQ(got.size(), stated.size());
    EXPECT_FALSE(got.empty());
    double most = got.size() == stated.size() ? 0 : 1e9;
    for (size_t i = 0; i < std::min(got.size(), stated.size()); ++i)
      most = std::max(most, std::abs(double{got[i]} - double{stated[i]}) / double{step});
    return most;
  }

  static constexpr double kOneStep = 1.001;
  int made_ = 0;
  std::string refused_;
};

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

// Any chain of sums, factors and bounds behind a product: rounded once, it may be one step apart.
class RandomChains : public IntegersBesideQdq {
 protected:
  static constexpr int64_t kRows = 4, kWidth = 24;

  Value link(EditView edit, Value v, Value stored_x, std::mt19937& draw) {
    auto real = [&] { return std::exp2(std::uniform_real_distribution<float>(-6, 3)(draw)); };
    const uint64_t seed = draw();
    switch (draw() % 9) {
      case 0:
        return op(edit, "Relu", {v});
      case 1:
        return op(edit, "Add", {v, floats(edit, {kWidth}, random(kWidth, seed, real()))});
      case 2:
        return op(edit, "Add", {v, stored_x});
      case 3:
        return op(edit, "Add", {v, v});
      case 4:
        return op(edit, "Mul", {v, floats(edit, {}, {real()})});
      case 5:
        return op(edit, "Div", {v, floats(edit, {1}, {real()})});
      case 6:
        return op(edit, "Max", {v, floats(edit, {}, {-real()})});
      case 7:
        return op(edit, "Min", {floats(edit, {}, {real()}), v});
      default: {
        Floats scale;
        for (int64_t i = 0; i < kWidth; ++i)
          scale.push_back(1e-3F * real());
        Value bias = floats(edit, {kWidth}, random(kWidth, seed, real()));
        Value other = op(edit, "Gemm", {stored_x, weights(edit, kWidth, scale, seed), bias});
        return op(edit, "Add", {other, v});
      }
    }
  }
  Value last(EditView edit, Value v, std::mt19937& draw) {
    constexpr const char* kFunctions[] = {"", "", "", "Tanh", "HardSwish", "Neg", "LeakyRelu"};
    const std::string function = kFunctions[draw() % std::size(kFunctions)];
    if (!function.empty()) return op(edit, function, {v});
    if (draw() % 3 != 0) return v;
    return op(edit, "ReduceMean", {v, ints(edit, {-1})});
  }
  Value chain(EditView edit, Value x, uint32_t seed) {
    std::mt19937 draw(seed);
    const bool is_signed = draw() % 2 == 0;
    Value d = stored(edit, x, 0.03F, is_signed ? 0 : 120, is_signed ? TN_I8 : TN_U8);
    Value v = d;
    for (uint64_t n = 1 + draw() % 6; n > 0; --n)
      v = link(edit, v, d, draw);
    return last(edit, v, draw);
  }
};

TEST_F(RandomChains, AreOneStepApart) {
  const Floats x = random(kRows * kWidth, 9);
  int n_refused = 0;
  constexpr int kChains = 250;
  for (uint32_t seed = 0; seed < kChains; ++seed) {
    make({kRows, kWidth}, [&](EditView edit, Value in) { return chain(edit, in, seed); });
    float most = 1e-3F;
    for (float y : run(model_, {kRows, kWidth}, x))
      most = std::max(most, std::abs(y));
    const float step = most / (seed % 3 == 0 ? 40 : 127);  // a third of them saturates
    const double steps = apart({kRows, kWidth}, x, step, [&](EditView edit, Value in) {
      return stored(edit, chain(edit, in, seed), step);
    });
    EXPECT_LE(steps, kOneStep) << "seed " << seed;
    n_refused += steps < 0;
    if (steps < 0) {
      EXPECT_THAT(refused_, HasSubstr("float")) << seed;
    }
  }
  EXPECT_LE(n_refused, kChains / 50) << refused_;
}

// Functions of 8-bit values, and what moves, compares, pads and averages them: rounded once.
class RandomMoves : public RandomChains {
 protected:
  Value moved(EditView edit, Value v, std::mt19937& draw) {
    const std::vector<int64_t> swapped{0, 2, 1}, two{std::min<int64_t>(2, v.type().dims[2])};
    Value from = ints(edit, {0}), last = ints(edit, {-1}), end = ints(edit, {6});
    switch (draw() % 12) {
      case 0:
        return op(edit, "Transpose", {v}, {{"perm", swapped}});
      case 1:
        return op(edit, "Concat", {v, v}, {{"axis", -1}});
      case 2:
        return op(edit, "Slice", {v, from, end, last});
      case 3:
        return op(edit, "Pad", {v, ints(edit, {0, 1, 0, 0, 0, 2})});
      case 4:
        return op(edit, "MaxPool", {v}, {{"kernel_shape", two}, {"strides", two}});
      case 5:
        return op(edit, "ReduceMax", {v, last});
      case 6:
        return op(edit, "ReduceMin", {v, ints(edit, {1})});
      case 7:
        return op(edit, "Trilu", {v}, {{"upper", 0}});
      case 8:
        return op(edit, "Max", {v, op(edit, "ReduceMin", {v, last})});
      case 9:
        return op(edit, "Min", {v, op(edit, "ReduceMax", {v, ints(edit, {1})})});
      case 10:
        return op(edit, "ReduceMean", {v, ints(edit, {1})});
      default:
        return op(edit, "Gather", {v, ints(edit, {-1, 0, -1})}, {{"axis", 1}});
    }
  }
  Value function(EditView edit, Value v, std::mt19937& draw) {
    constexpr const char* kFunctions[] = {"Neg", "Abs", "Sigmoid", "HardSwish", "Tanh", "Relu"};
    switch (draw() % 4) {
      case 0:
        return op(edit, "Mul", {v, floats(edit, {}, {-0.7F})});
      case 1:
        return op(edit, "Sub", {v, floats(edit, {1}, {0.3F})});
      default:
        return op(edit, kFunctions[draw() % std::size(kFunctions)], {v});
    }
  }
  Value moves(EditView edit, Value x, uint32_t seed) {
    std::mt19937 draw(seed);
    const auto zero = static_cast<uint8_t>(draw() % 2 == 0 ? 0 : 30);
    Value v = stored(edit, x, 0.03F, zero, draw() % 2 == 0 ? TN_I8 : TN_U8);
    for (uint64_t n = 1 + draw() % 4; n > 0; --n)
      v = draw() % 3 == 0 ? function(edit, v, draw) : moved(edit, v, draw);
    return v;
  }
};

TEST_F(RandomMoves, AreOneStepApart) {
  const std::vector<int64_t> shape{2, 4, 8};
  const Floats x = random(64, 9);
  int n_refused = 0;
  constexpr int kGraphs = 250;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const double steps = apart(shape, x, 0.05F, [&](EditView edit, Value in) {
      return stored(edit, moves(edit, in, seed), 0.05F);
    });
    EXPECT_LE(steps, kOneStep) << "seed " << seed;
    n_refused += steps < 0;
    if (steps < 0) {
      EXPECT_THAT(refused_, HasSubstr("float")) << seed;
    }
  }
  EXPECT_LE(n_refused, kGraphs / 3) << refused_;
}

}  // namespace
}  // namespace tenon::test

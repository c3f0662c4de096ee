// SPDX-License-Identifier: Apache-2.0
// quantizer.integers beside random models: at most one step of what is stored apart, or refused.
#include <random>

#include "plugins/quantizer/beside_qdq.hpp"

namespace tenon::test {
namespace {

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

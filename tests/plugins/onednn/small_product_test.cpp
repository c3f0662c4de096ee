// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by plain loops: orders of axes, extents, and where a primitive
// multiplies.

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

using Floats = std::vector<float>;

struct Shape {
  int64_t m, k, n;
};

Floats random_matrix(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats x(static_cast<size_t>(count));
  for (float& v : x)
    v = uniform(random);
  return x;
}

struct Made {
  Floats got;
  bool is_small = false, is_column = false;
  double copied = 0;  // bytes that copies read and write
};
Made run(GraphBuilder& builder, const Floats& a, const Floats& b, int64_t n_results) {
  builder.graph.finish();
  WeightStore store;
  Executable exe(builder.graph, {.threads = 1}, store);
  Made made;
  for (const Step& step : exe.plan().steps) {
    made.is_small |= step.kernel == "tenon:small_product";
    made.is_column |= step.kernel == "tenon:column_product";
    if (step.name.starts_with("reorder")) made.copied += step.bytes;
  }
  made.got.assign(static_cast<size_t>(n_results), -99.0F);
  const std::vector<const void*> in = {a.data(), b.data()};
  const std::vector<void*> out = {made.got.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return made;
}

// a @ b, of which each may be given as its transpose.
Made product(const Shape& s, const Floats& a, const Floats& b, bool turns_a, bool turns_b) {
  GraphBuilder builder(1);
  const Dims a_dims = turns_a ? Dims{s.k, s.m} : Dims{s.m, s.k};
  const Dims b_dims = turns_b ? Dims{s.n, s.k} : Dims{s.k, s.n};
  auto transposed = [&](int value, bool turns, const Dims& to) {
    return turns ? builder.node("Transpose", {value}, to, {{"perm", Dims{1, 0}}}) : value;
  };
  const int left = transposed(builder.input("a", a_dims), turns_a, {s.m, s.k});
  const int right = transposed(builder.input("b", b_dims), turns_b, {s.k, s.n});
  builder.output(builder.node("MatMul", {left, right}, {s.m, s.n}));
  return run(builder, a, b, s.m * s.n);
}

TEST(SmallProduct, AgreesWithF64InEachOrderOfAxes) {
  for (const Shape& s : {Shape{1, 1, 1},
                         {3, 3, 1},
                         {1, 7, 5},
                         {8, 8, 8},
                         {5, 9, 3},
                         {16, 64, 1},
                         {4, 4, 64},
                         {2, 3, 63},
                         {32, 32, 1}}) {
    const Floats a = random_matrix(s.m * s.k, 3), b = random_matrix(s.k * s.n, 4);
    for (int turns = 0; turns < 4; ++turns) {
      const bool turns_a = (turns & 1) != 0, turns_b = (turns & 2) != 0;
      const Made made = product(s, a, b, turns_a, turns_b);
      EXPECT_TRUE(made.is_small);
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          double want = 0;
          for (int64_t k = 0; k < s.k; ++k)
            want += double{a[static_cast<size_t>(turns_a ? k * s.m + i : i * s.k + k)]} *
                    double{b[static_cast<size_t>(turns_b ? j * s.k + k : k * s.n + j)]};
          ASSERT_NEAR(made.got[static_cast<size_t>(i * s.n + j)], want, 1e-5)
              << s.m << " x " << s.k << " x " << s.n << ", turns " << turns;
        }
      }
    }
  }
}

TEST(SmallProduct, LeavesOthersToAPrimitive) {
  for (const Shape& s : {Shape{8, 8, 17}, {2, 2, 65}, {1, 65, 65}, {1, (1 << 20) + 1, 1}}) {
    const Floats a = random_matrix(s.m * s.k, 3), b = random_matrix(s.k * s.n, 4);
    const Made made = product(s, a, b, false, false);
    EXPECT_FALSE(made.is_small || made.is_column) << s.m << " x " << s.k << " x " << s.n;
  }
}

TEST(ColumnProduct, AgreesWithF64WhereSumsRunAlongBothOperands) {
  for (const Shape& s :
       {Shape{1, 1025, 1}, {1, 10000, 1}, {64, 64, 1}, {1, 64, 64}, {300, 37, 1}, {1, 131, 200}}) {
    const Floats a = random_matrix(s.m * s.k, 5), b = random_matrix(s.k * s.n, 6);
    const bool turns_b = s.n > 1;
    const Made made = product(s, a, b, false, turns_b);
    EXPECT_TRUE(made.is_column) << s.m << " x " << s.k << " x " << s.n;
    for (int64_t i = 0; i < s.m * s.n; ++i) {
      double want = 0;
      for (int64_t k = 0; k < s.k; ++k)
        want += double{a[static_cast<size_t>(s.n > 1 ? k : i * s.k + k)]} *
                double{b[static_cast<size_t>(s.n > 1 ? i * s.k + k : k)]};
      ASSERT_NEAR(made.got[static_cast<size_t>(i)], want, 1e-6 * static_cast<double>(s.k));
    }
  }
}

// [3, 50, 37] @ [37, 1]
TEST(ColumnProduct, TakesTheRowsOfAllBatches) {
  const Floats a = random_matrix(3 * 50 * 37, 5), b = random_matrix(37, 6);
  GraphBuilder builder(1);
  const int left = builder.input("a", {3, 50, 37}), right = builder.input("b", {37, 1});
  builder.output(builder.node("MatMul", {left, right}, {3, 50, 1}));
  const Made made = run(builder, a, b, 150);
  EXPECT_TRUE(made.is_column);
  for (size_t i = 0; i < 150; ++i) {
    double want = 0;
    for (size_t k = 0; k < 37; ++k)
      want += double{a[i * 37 + k]} * double{b[k]};
    ASSERT_NEAR(made.got[i], want, 1e-5) << i;
  }
}

// The gradient of the weights of a layer with few results: its other operand, which is as large as
// the layer's input, is not copied.
TEST(TransposedProduct, CopiesNoLargeOperandForFewColumns) {
  for (const Shape& s : {Shape{300, 512, 1}, {300, 512, 10}, {257, 400, 33}}) {
    const Floats a = random_matrix(s.m * s.k, 7), b = random_matrix(s.k * s.n, 8);
    const Made made = product(s, a, b, true, false);
    EXPECT_LT(made.copied, static_cast<double>(s.m * s.k * 4)) << s.n;
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double want = 0;
        for (int64_t k = 0; k < s.k; ++k)
          want += double{a[static_cast<size_t>(k * s.m + i)]} *
                  double{b[static_cast<size_t>(k * s.n + j)]};
        ASSERT_NEAR(made.got[static_cast<size_t>(i * s.n + j)], want, 1e-4) << s.n;
      }
  }
}

TEST(SmallProduct, SpreadsNanAndInfinity) {
  const Made made = product({2, 2, 1}, {NAN, 0.0F, INFINITY, 0.0F}, {0.0F, 1.0F}, false, false);
  EXPECT_TRUE(std::isnan(made.got[0]));
  EXPECT_TRUE(std::isnan(made.got[1]));
}

}  // namespace
}  // namespace tenon::onednn::test

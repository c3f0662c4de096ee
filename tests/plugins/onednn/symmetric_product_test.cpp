// SPDX-License-Identifier: Apache-2.0
// Products that are symmetric: half is computed, and only where the graph says that they are.

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"
#include "rewrites/centred_products.hpp"

namespace tenon::onednn::test {
namespace {

using Floats = std::vector<float>;

struct Outcome {
  Floats got;
  bool is_symmetric = false;  // some step says so
};

Outcome run(const Graph& graph, const std::vector<Floats>& inputs, bool bf16 = false) {
  WeightStore store;
  // Of the same kernels on every CPU: sums on tiles round less.
  Executable exe(graph, {.bf16 = bf16, .threads = 2, .without = {"bf16x6"}}, store);
  Outcome outcome;
  for (const Step& step : exe.plan().steps)
    outcome.is_symmetric |= step.kernel.find("(symmetric)") != std::string::npos;
  std::vector<const void*> in;
  for (const Floats& input : inputs)
    in.push_back(input.data());
  outcome.got.assign(static_cast<size_t>(graph.values[graph.outputs[0]].count()), -99.0F);
  std::vector<void*> out = {outcome.got.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return outcome;
}

Floats random_matrix(const Dims& dims, double mean) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(mean - 1, mean + 1);
  Floats x(static_cast<size_t>(element_count(dims)));
  for (float& v : x)
    v = static_cast<float>(uniform(random));
  return x;
}

// Builds graphs over one matrix x; mean_axis is that of its means.
struct Formula : GraphBuilder {
  explicit Formula(const Dims& x_dims) : GraphBuilder(1), dims(x_dims), x(input("x", dims)) {}

  int transposed(int a) {
    const Dims d = graph.values[a].dims;
    return node("Transpose", {a}, {d[1], d[0]}, {{"perm", Dims{1, 0}}});
  }
  int mean(int of, int64_t axis, bool keeps_axis) {
    Dims made = graph.values[of].dims;
    made[static_cast<size_t>(axis)] = 1;
    if (!keeps_axis) made.erase(made.begin() + axis);
    return node("ReduceMean", {of, constant_i64({axis})}, made,
                {{"keepdims", int64_t{keeps_axis}}});
  }
  int sub(int a, int b) {
    const Dims made = graph.values[graph.values[a].dims.size() == 2 ? a : b].dims;
    return node(
        "Sub", {a, b}, made, {},
        {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_INPUT, 1, 0, 0, 0}, {TN_EXPR_SUB, 0, 1, 0, 0}});
  }
  int centred(int64_t axis, bool keeps_axis = true) { return sub(x, mean(x, axis, keeps_axis)); }
  void multiply(int a, int b) {
    output(node("MatMul", {a, b}, {graph.values[a].dims[0], graph.values[b].dims[1]}));
    graph.finish();
  }

  Dims dims;
  int x;
};

// x^T x or x x^T in double, or the same of x less its means: the sum is over the axis.
std::vector<double> exact(const Floats& x, const Dims& dims, size_t axis, bool centres) {
  const size_t n = static_cast<size_t>(dims[1 - axis]);
  const size_t k = static_cast<size_t>(dims[axis]);
  auto at = [&](size_t i, size_t p) {
    return static_cast<double>(x[axis == 0 ? p * n + i : i * k + p]);
  };
  std::vector<double> used(n * k), result(n * n);
  for (size_t i = 0; i < n; ++i) {
    double mean = 0;
    for (size_t p = 0; p < k && centres; ++p)
      mean += at(i, p) / static_cast<double>(k);
    for (size_t p = 0; p < k; ++p)
      used[i * k + p] = at(i, p) - mean;
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      double sum = 0;
      for (size_t p = 0; p < k; ++p)
        sum += used[i * k + p] * used[j * k + p];
      result[i * n + j] = result[j * n + i] = sum;
    }
  }
  return result;
}

double furthest(const Floats& got, const std::vector<double>& expected) {
  double worst = 0, most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    most = std::max(most, std::abs(expected[i]));
  }
  return worst / most;
}

// 537 columns: halves of other sizes at each depth.
const Dims kTall = {513, 537};
const Dims kWide = {537, 513};

TEST(SymmetricProduct, MultipliesAMatrixByItsTranspose) {
  for (bool is_tall : {true, false}) {
    Formula f(is_tall ? kTall : kWide);
    int t = f.transposed(f.x);
    f.multiply(is_tall ? t : f.x, is_tall ? f.x : t);
    Floats x = random_matrix(f.dims, 0);

    Outcome outcome = run(f.graph, {x});

    EXPECT_TRUE(outcome.is_symmetric);
    EXPECT_LT(furthest(outcome.got, exact(x, f.dims, is_tall ? 0 : 1, false)), 1e-6);
  }
}

TEST(SymmetricProduct, TakesGemmAndBf16) {
  Formula f(kTall);
  f.output(f.node("Gemm", {f.x, f.x}, {537, 537}, {{"transA", int64_t{1}}}));
  f.graph.finish();
  Floats x = random_matrix(f.dims, 0);

  Outcome outcome = run(f.graph, {x}, true);

  EXPECT_TRUE(outcome.is_symmetric);
  EXPECT_LT(furthest(outcome.got, exact(x, f.dims, 0, false)), 5e-3);
  for (size_t i = 0; i < 537; ++i)
    for (size_t j = 0; j < i; ++j)
      ASSERT_EQ(outcome.got[i * 537 + j], outcome.got[j * 537 + i]) << i << ", " << j;
}

// One factor is centred, or both: as near to double as the plain product, large mean or not.
void expect_centred(const Dims& dims, double mean) {
  const bool is_tall = dims == kTall;
  const int64_t axis = is_tall ? 0 : 1;
  const Floats x = random_matrix(dims, mean);
  const std::vector<double> expected = exact(x, dims, static_cast<size_t>(axis), true);
  for (auto [centres_a, centres_b] : {std::pair(true, false), {false, true}, {true, true}}) {
    Formula f(dims);
    int d = f.centred(axis, axis == 1);
    int a = centres_a ? d : f.x;
    int b = centres_b ? d : f.x;
    f.multiply(is_tall ? f.transposed(a) : a, is_tall ? b : f.transposed(b));
    Outcome plain = run(f.graph, {x});
    centre_products(f.graph);

    Outcome outcome = run(f.graph, {x});

    EXPECT_TRUE(outcome.is_symmetric);
    EXPECT_EQ(plain.is_symmetric, centres_a && centres_b);
    EXPECT_LE(furthest(outcome.got, expected), 2 * furthest(plain.got, expected));
  }
}

TEST(SymmetricProduct, CentresWithoutCancellation) {
  for (double mean : {0.0, 1000.0}) {
    SCOPED_TRACE(mean);
    expect_centred(kTall, mean);
    expect_centred(kWide, mean);
  }
}

struct Other {
  const char* what;
  Dims dims;
  std::function<void(Formula&)> build;
};
const Other kOthers[] = {
    {"means over the other axis", kTall,
     [](Formula& f) { f.multiply(f.transposed(f.x), f.centred(1)); }},
    {"means of rows that broadcast as if of columns",
     {537, 537},
     [](Formula& f) { f.multiply(f.x, f.transposed(f.centred(1, false))); }},
    {"another matrix", kTall,
     [](Formula& f) { f.multiply(f.transposed(f.input("y", f.dims)), f.centred(0)); }},
    {"means of another matrix", kTall,
     [](Formula& f) {
       int other = f.mean(f.input("y", f.dims), 0, true);
       f.multiply(f.transposed(f.x), f.sub(f.x, other));
     }},
    {"means less x", kTall,
     [](Formula& f) { f.multiply(f.transposed(f.x), f.sub(f.mean(f.x, 0, false), f.x)); }},
    {"a sum over the other axis",
     {537, 537},
     [](Formula& f) { f.multiply(f.x, f.transposed(f.centred(0))); }},
    {"no transpose", {537, 537}, [](Formula& f) { f.multiply(f.x, f.x); }},
    {"another matrix of the same size", kTall,
     [](Formula& f) { f.multiply(f.transposed(f.x), f.input("y", f.dims)); }},
    {"too small",
     {513, 100},
     [](Formula& f) { f.multiply(f.transposed(f.x), f.centred(0, false)); }},
};

TEST(SymmetricProduct, LeavesOthersAlone) {
  for (const Other& other : kOthers) {
    Formula f(other.dims);
    other.build(f);
    std::vector<Floats> inputs;
    for (size_t i = 0; i < f.graph.inputs.size(); ++i)
      inputs.push_back(random_matrix(f.dims, 1 + static_cast<double>(i)));
    Graph whole = f.graph;
    centre_products(f.graph);

    Outcome outcome = run(f.graph, inputs);

    EXPECT_FALSE(outcome.is_symmetric) << other.what;
    EXPECT_EQ(outcome.got, run(whole, inputs).got) << other.what;
  }
}

TEST(SymmetricProduct, LeavesBatchesAlone) {
  Formula f({2, 513, 537});
  int t = f.node("Transpose", {f.x}, {2, 537, 513}, {{"perm", Dims{0, 2, 1}}});
  f.output(f.node("MatMul", {t, f.x}, {2, 537, 537}));
  f.graph.finish();
  centre_products(f.graph);

  EXPECT_FALSE(run(f.graph, {random_matrix(f.dims, 0)}).is_symmetric);
}

}  // namespace
}  // namespace tenon::onednn::test

// SPDX-License-Identifier: Apache-2.0
// Losses that compare how samples lie to each other, against plain loops; several teachers.
#include "plugins/distiller/loss_test.hpp"

namespace tenon::test {
namespace {

constexpr const char* kId = "distiller.features";
constexpr size_t kSamples = 4;

// Products of [4, 3] with a matrix of as many columns: `fc`, and its answer.
std::string model_of(int columns, double first) {
  std::string c = std::to_string(columns), weights;
  for (int i = 0; i < 3 * columns; ++i)
    weights += cat(i ? ", " : "", std::to_string(first + 0.35 * (i * 7 % 5) - 0.6));
  return cat("graph {\n  input %x: f64[4,3]\n  constant %w: f64[3,", c, "] = [", weights,
             "]\n  %fc: f64[4,", c, "] = MatMul(%x, %w) @fc\n  output y = %fc\n}\n");
}
const Numbers kInputs{1, -2, 0.5, 0.3, 0.9, -1, -0.7, 0.2, 1.4, 2, 1, -0.4};

using Rows = std::vector<Numbers>;

class Relations : public LossTest {
 protected:
  void SetUp() override {
    LossTest::SetUp();
    lend_hard();
  }
  static std::string student_of(int columns, double first) {
    std::string text = model_of(columns, first);
    text.insert(text.find("  constant"), "  input %target: f64[1]\n");
    return text;
  }
  double value(const OwnedGraph& graph) { return results(graph, {kInputs, {0}}).at(0).at(0); }
  // What the product makes, a row for each sample.
  Rows made(const OwnedGraph& graph, const char* weight, const Rows& x, size_t columns) {
    Tensor t = graph.view().find(weight).constant();
    const bool is_single = dtype_of(t.dl()) == TN_F32;
    Rows out;
    for (const Numbers& row : x) {
      Numbers& y = out.emplace_back(columns, 0.0);
      for (size_t i = 0; i < row.size(); ++i)
        for (size_t c = 0; c < columns; ++c) {
          size_t at = i * columns + c;
          y[c] += row[i] * (is_single ? double{t.data<float>()[at]} : t.data<double>()[at]);
        }
    }
    return out;
  }
  static Rows inputs() {
    Rows out;
    for (size_t n = 0; n < kSamples; ++n)
      out.emplace_back(kInputs.begin() + static_cast<ptrdiff_t>(3 * n),
                       kInputs.begin() + static_cast<ptrdiff_t>(3 * n + 3));
    return out;
  }
  static double product(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
      sum += a[i] * b[i];
    return sum;
  }
  static Rows products(const Rows& a, const Rows& b) {
    Rows out;
    for (const Numbers& one : a) {
      out.emplace_back();
      for (const Numbers& other : b)
        out.back().push_back(product(one, other));
    }
    return out;
  }
  static Rows of_length_1(Rows rows) {
    for (Numbers& row : rows) {
      double length = std::sqrt(product(row, row));
      for (double& x : row)
        x /= length;
    }
    return rows;
  }
};

TEST_F(Relations, SimilarityIsTheDifferenceOfNormedProductsOfSamples) {
  teacher_ = parse(model_of(5, 0.4));

  OwnedGraph graph = built(student_of(2, 0), kId, {{"features", {"fc"}}, {"match", "similarity"}});

  OwnedGraph student = parse(model_of(2, 0));
  Rows s = made(student, "w", inputs(), 2), t = made(teacher_, "w", inputs(), 5);
  s = of_length_1(products(s, s)), t = of_length_1(products(t, t));
  double sum = 0;
  for (size_t i = 0; i < kSamples; ++i)
    for (size_t j = 0; j < kSamples; ++j)
      sum += (s[i][j] - t[i][j]) * (s[i][j] - t[i][j]);
  EXPECT_GT(sum, 0.1);
  EXPECT_NEAR(value(graph), sum / (kSamples * kSamples), 1e-12);
  EXPECT_TRUE(trained_.empty());
}

// Rotated by a right angle and twice as large, a value has the same products up to a factor.
TEST_F(Relations, SimilarityDoesNotSeeTurnsAndSizes) {
  const char* text = R"(graph {
  input %x: f64[4,3]TARGET
  constant %w: f64[3,2] = WEIGHTS
  %fc: f64[4,2] = MatMul(%x, %w) @fc
  output y = %fc
}
)";
  auto with = [&](const char* target, const char* weights) {
    std::string out = text;
    out.replace(out.find("TARGET"), 6, target);
    return out.replace(out.find("WEIGHTS"), 7, weights);
  };
  teacher_ = parse(with("", "[1, 2, -1, 0.5, 3, 1]"));

  OwnedGraph graph = built(with("\n  input %target: f64[1]", "[4, -2, 1, 2, 2, -6]"), kId,
                           {{"features", {"fc"}}, {"match", "similarity"}});

  EXPECT_NEAR(value(graph), 0, 1e-15);
}

TEST_F(Relations, ContrastAsksForTheRightSampleAmongAll) {
  teacher_ = parse(model_of(5, 0.4));
  json options{{"features", {"fc"}}, {"match", "contrast"}, {"width", 3}, {"softness", 0.2}};

  OwnedGraph graph = built(student_of(2, 0), kId, options);

  ASSERT_THAT(trained_, ElementsAre("distiller/contrast0/student", "distiller/contrast0/teacher"));
  OwnedGraph student = parse(model_of(2, 0));
  Rows s = made(graph, "distiller/contrast0/student", made(student, "w", inputs(), 2), 3);
  Rows t = made(graph, "distiller/contrast0/teacher", made(teacher_, "w", inputs(), 5), 3);
  Rows cosines = products(of_length_1(s), of_length_1(t));
  double sum = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    double rows = 0, columns = 0;
    for (size_t j = 0; j < kSamples; ++j)
      rows += std::exp(cosines[i][j] / 0.2), columns += std::exp(cosines[j][i] / 0.2);
    sum += std::log(rows) + std::log(columns) - 2 * cosines[i][i] / 0.2;
  }
  EXPECT_NEAR(value(graph), sum / (2 * kSamples), 1e-12);
}

// 1 / softness is more than exp takes even in float64.
TEST_F(Relations, ContrastHasANumberForASmallSoftness) {
  teacher_ = parse(model_of(5, 0.4));
  const double loss = value(built(
      student_of(2, 0), kId, {{"features", {"fc"}}, {"match", "contrast"}, {"softness", 1e-4}}));
  EXPECT_TRUE(std::isfinite(loss)) << loss;
  EXPECT_GT(loss, 0);
}

TEST_F(Relations, ContrastTrainsTheStudentAndBothMapsAndNotTheTeacher) {
  teacher_ = parse(model_of(5, 0.4));
  OwnedGraph graph = built(student_of(2, 0), kId, {{"features", {"fc"}}, {"match", "contrast"}});
  double before = value(graph);

  std::vector<Numbers> gradients = results(
      applied(graph, "autodiff.grad",
              {{"wrt", {"w", "distiller/contrast0/student", "distiller/contrast0/teacher"}}}),
      {kInputs, {0}});

  // Against the gradient by the student's first weight: the loss of a step of 1e-6.
  std::string moved = student_of(2, 0);
  moved.replace(moved.find("[-0.600000"), 10, "[-0.599999");
  double after = value(built(moved, kId, {{"features", {"fc"}}, {"match", "contrast"}}));
  EXPECT_NEAR((after - before) / 1e-6, gradients.at(0).at(0), 1e-4);
  EXPECT_GT(std::abs(gradients.at(0).at(0)), 1e-2);
  for (size_t k : {1u, 2u})
    EXPECT_GT(product(gradients.at(k), gradients.at(k)), 0);
}

TEST_F(Relations, WhatHasNoVectorForEachSampleIsRefused) {
  teacher_ = parse(model_of(5, 0.4));
  const char* scalar = R"(graph {
  input %x: f64[4,3]
  input %target: f64[1]
  %all: f64[] = ReduceSum(%x) {keepdims = 0} @all
  output y = %all
}
)";
  for (const char* match : {"similarity", "relation", "contrast"})
    EXPECT_THAT(refused(scalar, kId, {{"features", {{"all", "fc"}}}, {"match", match}}),
                HasSubstr(cat("each sample of both, for match ", match)));
}

// The second teacher takes the place of labels: the answers of both, each with its own share.
TEST_F(Relations, SeveralTeachersAreOneInThePlaceOfLabels) {
  const json alone{{"alpha", 1}, {"axis", -1}, {"temperature", 2}};
  auto of = [&](double first) {
    teacher_ = parse(model_of(2, first));
    return value(built(student_of(2, 0), "distiller.response", alone));
  };
  double first = of(0.4), second = of(-0.5);
  teacher_ = parse(model_of(2, -0.5));
  Result<Component> inner = loss("distiller.response", alone);
  ASSERT_TRUE(inner.ok()) << text_of(inner.status());
  hard_ = std::move(*inner);
  teacher_ = parse(model_of(2, 0.4));

  OwnedGraph both = built(student_of(2, 0), "distiller.response",
                          {{"alpha", 0.25}, {"axis", -1}, {"temperature", 2}});

  EXPECT_NE(first, second);
  EXPECT_NEAR(value(both), 0.25 * first + 0.75 * second, 1e-12);
}

}  // namespace
}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
#include "plugins/distiller/loss_test.hpp"

namespace tenon::test {
namespace {

constexpr const char* kId = "distiller.response";

// The student's scores are what it reads; the teacher's are half of that, and one more for class 0.
constexpr const char* kStudent = R"(graph {
  input %z: f64[2,3]
  %logits: f64[2,3] = Identity(%z) @logits
  output logits = %logits
}
)";
constexpr const char* kTeacher = R"(graph {
  input %z: f64[2,3]
  constant %half: f64[] = [0.5]
  constant %shift: f64[3] = [1, 0, 0]
  %h: f64[2,3] = Mul(%z, %half) @h
  %logits: f64[2,3] = Add(%h, %shift) @logits
  output answer = %logits
}
)";
const Numbers kScores{1, 2, 3, -1, 0.5, 0};

Numbers softmax(const Numbers& z, size_t from, double temperature) {
  Numbers p;
  double sum = 0;
  for (size_t c = 0; c < 3; ++c)
    sum += p.emplace_back(std::exp(z[from + c] / temperature));
  for (double& x : p)
    x /= sum;
  return p;
}
Numbers teacher_scores() {
  Numbers out;
  for (size_t i = 0; i < kScores.size(); ++i)
    out.push_back(kScores[i] / 2 + (i % 3 == 0 ? 1 : 0));
  return out;
}

constexpr double kGolden4 = 0.32722226239031593;
constexpr double kGolden1 = 0.3076247985417672;
class Response : public LossTest {};

// Figures of NumPy: T^2 mean_n sum_c p_t (log p_t - log p_s) for T = 4 and 1.
TEST_F(Response, IsTheSoftenedDivergence) {
  teacher_ = parse(kTeacher);

  OwnedGraph at4 = built(kStudent, kId, {{"alpha", 1}});
  OwnedGraph at1 = built(kStudent, kId, {{"alpha", 1}, {"temperature", 1}});

  EXPECT_NEAR(results(at4, {kScores}).at(0).at(0), kGolden4, 1e-12);
  EXPECT_NEAR(results(at1, {kScores}).at(0).at(0), kGolden1, 1e-12);
}

TEST_F(Response, ItsGradientIsTheDifferenceOfTheSoftenedAnswers) {
  teacher_ = parse(kTeacher);
  OwnedGraph graph = built(kStudent, kId, {{"alpha", 1}, {"temperature", 2}});

  Numbers gradient = results(applied(graph, "autodiff.grad"), {kScores}).at(0);

  // T (p_s - p_t) / n, and nothing through the teacher, which reads the same input.
  for (size_t i = 0; i < 6; ++i) {
    double s = softmax(kScores, i / 3 * 3, 2)[i % 3];
    double t = softmax(teacher_scores(), i / 3 * 3, 2)[i % 3];
    EXPECT_NEAR(gradient.at(i), 2 * (s - t) / 2, 1e-12) << i;
  }
}

TEST_F(Response, AStudentThatIsItsTeacherHasNothingToLearn) {
  teacher_ = parse(kStudent);
  OwnedGraph graph = built(kStudent, kId, {{"alpha", 1}});

  EXPECT_EQ(results(graph, {kScores}).at(0).at(0), 0);
  Numbers gradient = results(applied(graph, "autodiff.grad"), {kScores}).at(0);
  for (double g : gradient)
    EXPECT_NEAR(g, 0, 1e-15);
}

TEST_F(Response, AlphaSharesBetweenTeacherAndLabels) {
  teacher_ = parse(kTeacher);
  lend_hard();
  std::string student(kStudent);
  student.insert(student.find("  %logits"), "  input %target: f64[1]\n");

  OwnedGraph graph = built(student, kId, {{"alpha", 0.25}});

  EXPECT_NEAR(results(graph, {kScores, {10}}).at(0).at(0), 0.25 * kGolden4 + 0.75 * 10, 1e-12);
}

TEST_F(Response, TheTeacherIsAScopeAndNotTrained) {
  teacher_ = parse(kTeacher);
  OwnedGraph graph = built(kStudent, kId, {{"alpha", 1}});

  size_t n = 0;
  for (Node node : graph.view().nodes())
    n += node.scope() == "teacher";
  EXPECT_EQ(n, 3u);  // Mul, Add, StopGradient
  EXPECT_TRUE(trained_.empty());
}

TEST_F(Response, CachedAnswersAreTheLastTarget) {
  std::string student(kStudent);
  student.insert(student.find("  %logits"), "  input %target: f64[2,3]\n");

  OwnedGraph graph = built(student, kId, {{"alpha", 1}, {"cached", true}});

  EXPECT_NEAR(results(graph, {kScores, teacher_scores()}).at(0).at(0), kGolden4, 1e-12);
}

TEST_F(Response, ClassesCanBeOnAnotherAxis) {
  teacher_ = parse(R"(graph {
  input %z: f64[2,3]
  constant %shift: f64[2,1] = [1, 0]
  %logits: f64[2,3] = Add(%z, %shift) @logits
  output answer = %logits
}
)");
  // The same shift of all classes changes nothing on axis 1, and something on axis 0.
  EXPECT_NEAR(results(built(kStudent, kId, {{"alpha", 1}}), {kScores}).at(0).at(0), 0, 1e-15);
  EXPECT_GT(results(built(kStudent, kId, {{"alpha", 1}, {"axis", 0}}), {kScores}).at(0).at(0), 0.1);
}

TEST_F(Response, ComputesInFloat32WhatIsLower) {
  std::string low(kStudent);
  low.replace(low.find("f64[2,3]\n  %logits: f64[2,3] = Identity(%z) @logits"), 50,
              "f64[2,3]\n  %logits: bf16[2,3] = Cast(%z) {to = dtype bf16} @logits");
  teacher_ = parse(low);
  OwnedGraph graph = built(low, kId, {{"alpha", 1}});
  EXPECT_EQ(graph.view().outputs()[0].dtype(), TN_F32);
}

TEST_F(Response, SaysWhatDoesNotFit) {
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}}),
              HasSubstr("option teacher: expected a model to learn from, got none, and the student "
                        "has no original"));
  teacher_ = parse(kTeacher);
  EXPECT_THAT(refused_options(kId, {{"alpha", 1}, {"cached", true}}), HasSubstr("got both"));
  EXPECT_THAT(refused_options(kId, {{"temperature", 0}}), HasSubstr("temperature"));
  EXPECT_THAT(refused_options(kId, {{"temperature", -1}}), HasSubstr("temperature"));
  EXPECT_THAT(refused_options(kId, {{"alpha", 1.5}}), HasSubstr("alpha"));
  EXPECT_THAT(refused_options(kId, {{"alpha", 1}, {"teacher_output", "logit"}}),
              HasSubstr("option teacher_output: expected one of answer, got 'logit'"));
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}, {"axis", 2}}), HasSubstr("option axis"));
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}, {"prediction", 1}}),
              HasSubstr("option prediction: expected a number below 1, got 1"));
  lend_hard();
  EXPECT_THAT(refused(kStudent, kId, json::object()),
              HasSubstr("expected labels for the hard part"));
}

TEST_F(Response, RefusesATeacherOfAnotherShape) {
  teacher_ = parse(R"(graph {
  input %z: f64[2,3]
  %pairs: f64[2,6] = Concat(%z, %z) {axis = 1} @pairs
  output answer = %pairs
}
)");
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}}),
              HasSubstr("the student's logits is float64[2, 3], the teacher's answer is "
                        "float64[2, 6]: expected the same shape"));
  teacher_ = parse(R"(graph {
  input %z: f64[2,4]
  %logits: f64[2,4] = Identity(%z) @logits
  output answer = %logits
}
)");
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}}),
              HasSubstr("the teacher's input z: expected float64[2, 3]"));
  teacher_ = parse(R"(graph {
  input %a: f64[2,3]
  input %b: f64[2,3]
  %logits: f64[2,3] = Add(%a, %b) @logits
  output answer = %logits
}
)");
  EXPECT_THAT(refused(kStudent, kId, {{"alpha", 1}}),
              HasSubstr("the teacher's input a: expected the name of an input of the student (z)"));
}

}  // namespace
}  // namespace tenon::test

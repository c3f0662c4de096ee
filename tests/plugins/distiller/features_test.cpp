// SPDX-License-Identifier: Apache-2.0
#include "plugins/distiller/loss_test.hpp"

namespace tenon::test {
namespace {

constexpr const char* kId = "distiller.features";

// Channels on axis 1, as in a CNN.
std::string model_of(int channels) {
  std::string c = std::to_string(channels), weights;
  for (int i = 0; i < channels * 2; ++i)
    weights += cat(i ? ", " : "", std::to_string(0.25 * (i % 5) - 0.4));
  return cat("graph {\n  input %x: f64[2,2,2,2]\n  constant %w: f64[", c, ",2,1,1] = [", weights,
             "]\n  %conv: f64[2,", c, ",2,2] = Conv(%x, %w) @conv\n  %act: f64[2,", c,
             ",2,2] = Relu(%conv) @act\n  %flat: f64[2,", std::to_string(channels * 4),
             "] = Flatten(%act) @flat\n  output y = %flat\n}\n");
}

class Features : public LossTest {
 protected:
  void SetUp() override {
    LossTest::SetUp();
    lend_hard();
  }
  // The student with a label of 0, so that the hard part is nothing.
  std::string with_target(std::string student) {
    student.insert(student.find("  constant"), "  input %target: f64[1]\n");
    return student;
  }
  Numbers x() {
    std::mt19937 random(5);
    return random_numbers(16, random);
  }
};

TEST_F(Features, AStudentThatIsItsTeacherHasNothingToLearn) {
  teacher_ = parse(model_of(3));
  OwnedGraph graph = built(with_target(model_of(3)), kId, {{"features", {"act", "conv"}}});

  EXPECT_EQ(results(graph, {x(), {0}}).at(0).at(0), 0);
  Numbers gradient = results(applied(graph, "autodiff.grad", {{"wrt", {"w"}}}), {x(), {0}}).at(0);
  for (double g : gradient)
    EXPECT_EQ(g, 0);
  EXPECT_TRUE(trained_.empty());
}

TEST_F(Features, IsTheMeanSquaredDifference) {
  std::string other = model_of(3);
  teacher_ = parse(other);
  std::string student = with_target(model_of(3));
  student.replace(student.find("[-0.4"), 5, "[ 0.6");  // w[0,0] is 1 more

  OwnedGraph graph = built(student, kId, {{"features", {{"conv", "conv"}}}, {"weight", 10}});

  // conv differs in channel 0 by x's channel 0: 8 of 24 numbers.
  double sum = 0;
  Numbers in = x();
  for (size_t i = 0; i < 16; ++i)
    if (i % 8 < 4) sum += in[i] * in[i];
  EXPECT_NEAR(results(graph, {in, {0}}).at(0).at(0), 10 * sum / 24, 1e-12);
  EXPECT_NEAR(results(graph, {in, {3}}).at(0).at(0), 10 * sum / 24 + 3, 1e-12);
}

TEST_F(Features, AnAdapterIsTrainedWhereChannelsDiffer) {
  teacher_ = parse(model_of(5));

  OwnedGraph graph = built(with_target(model_of(3)), kId, {{"features", {"act"}}});

  ASSERT_THAT(trained_, ElementsAre("distiller/adapter0"));
  EXPECT_THAT(graph.view().find("distiller/adapter0").type().dims, ElementsAre(5, 3, 1, 1));
  OwnedGraph g = applied(graph, "autodiff.grad", {{"wrt", {"distiller/adapter0", "w"}}});
  std::vector<Numbers> gradients = results(g, {x(), {0}});
  double norms[2] = {};
  for (size_t k = 0; k < 2; ++k)
    for (double one : gradients.at(k))
      norms[k] += one * one;
  EXPECT_GT(norms[0], 0);
  EXPECT_GT(norms[1], 0);
}

TEST_F(Features, AProductAdaptsWhatHasItsChannelsAtTheEnd) {
  teacher_ = parse(model_of(5));

  OwnedGraph graph = built(with_target(model_of(3)), kId, {{"features", {"flat"}}, {"seed", 3}});

  EXPECT_THAT(graph.view().find("distiller/adapter0").type().dims, ElementsAre(12, 20));
}

TEST_F(Features, TheTeachersAnswerIsAskedInTheSameCopy) {
  teacher_ = parse(model_of(3));
  OwnedGraph graph = built(with_target(model_of(3)), kId, {{"features", {"act"}}, {"alpha", 0.5}});

  size_t convolutions = 0;
  for (Node node : graph.view().nodes())
    convolutions += node.is("Conv") && node.scope() == "teacher";
  EXPECT_EQ(convolutions, 1u);
  EXPECT_EQ(results(graph, {x(), {0}}).at(0).at(0), 0);
}

TEST_F(Features, DistillIsAnswersAndHintsInOne) {
  teacher_ = parse(model_of(5));
  json soft{{"alpha", 0.5}, {"temperature", 2}};
  std::string student = with_target(model_of(5));
  student.replace(student.find("[-0.4"), 5, "[ 0.6");
  auto value = [&](const char* id, const json& options) {
    return results(built(student, id, options), {x(), {1}}).at(0).at(0);
  };

  double answers = value("distiller.distill", soft);
  EXPECT_EQ(answers, value("distiller.response", soft));
  soft["features"] = {"act"};
  double both = value("distiller.distill", soft);
  EXPECT_EQ(both, value(kId, soft));
  EXPECT_GT(both, answers);
}

TEST_F(Features, SaysWhichNamesThereAre) {
  teacher_ = parse(model_of(3));
  EXPECT_THAT(refused_options(kId, {{"features", {"relu"}}}),
              HasSubstr("option features: expected a float value that a node of the teacher makes "
                        "(conv, act, flat), got 'relu'"));
  EXPECT_THAT(refused(with_target(model_of(3)), kId, {{"features", {{"relu", "act"}}}}),
              HasSubstr("a node of the student makes (conv, act, flat), got 'relu'"));
  EXPECT_THAT(refused_options(kId, {{"features", {{"act", 3}}}}), HasSubstr("got 3"));
  EXPECT_THAT(refused_options(kId, {{"features", json::array()}}), HasSubstr("got none"));
  EXPECT_THAT(refused_options(kId, json::object()), HasSubstr("features"));
}

TEST_F(Features, RefusesShapesThatNoAdapterMends) {
  teacher_ = parse(model_of(5));
  EXPECT_THAT(refused(with_target(model_of(3)), kId, {{"features", {"act"}}, {"adapter", "none"}}),
              HasSubstr("the student's act is float64[2, 3, 2, 2], teacher/act is float64[2, 5, 2, "
                        "2]: expected the same shape"));
  EXPECT_THAT(refused(with_target(model_of(3)), kId, {{"features", {{"act", "flat"}}}}),
              HasSubstr("expected the same rank"));
}

}  // namespace
}  // namespace tenon::test

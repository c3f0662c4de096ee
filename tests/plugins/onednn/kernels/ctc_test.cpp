// SPDX-License-Identifier: Apache-2.0
// Losses against the sum over all paths, written down one by one, and gradients against differences
// of it.

#include "kernels/ctc.h"

#include <cmath>
#include <vector>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

using Labels = std::vector<int64_t>;

struct Case {
  int64_t frames, classes, blank;
  Labels target;
};

// Repeated classes become one, then blanks go.
Labels spelled(const Labels& path, int64_t blank) {
  Labels out;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) out.push_back(path[t]);
  return out;
}

double loss_of(const Case& c, const std::vector<double>& scores) {
  double all = 0;
  Labels path(static_cast<size_t>(c.frames), 0);
  const auto paths = static_cast<int64_t>(std::llround(std::pow(c.classes, c.frames)));
  for (int64_t number = 0; number < paths; ++number) {
    double log_p = 0;
    int64_t rest = number;
    for (int64_t t = 0; t < c.frames; ++t, rest /= c.classes) {
      const double* row = scores.data() + t * c.classes;
      double sum = 0;
      for (int64_t k = 0; k < c.classes; ++k)
        sum += std::exp(row[k]);
      path[static_cast<size_t>(t)] = rest % c.classes;
      log_p += row[rest % c.classes] - std::log(sum);
    }
    if (spelled(path, c.blank) == c.target) all += std::exp(log_p);
  }
  return -std::log(all);
}

double slope_of(const Case& c, std::vector<double> scores, size_t i) {
  constexpr double kStep = 1e-5;
  scores[i] += kStep;
  const double above = loss_of(c, scores);
  scores[i] -= 2 * kStep;
  return (above - loss_of(c, scores)) / (2 * kStep);
}

class CtcKernel : public EachLevel {
 protected:
  struct Result {
    std::vector<float> losses, gradients;
  };
  Result run(Ctc args, const std::vector<float>& scores, const Labels& targets) {
    Result out{std::vector<float>(static_cast<size_t>(args.samples), 7.0F),
               std::vector<float>(scores.size(), 7.0F)};
    args.scores = scores.data();
    args.targets = targets.data();
    args.losses = out.losses.data();
    args.gradients = out.gradients.data();
    ctc(context_, args);
    return out;
  }
};

TEST_P(CtcKernel, IsTheSumOverAllPaths) {
  const Case kCases[] = {{4, 3, 0, {1, 2}},    {5, 3, 0, {1, 1}}, {4, 3, 2, {0}},
                         {3, 4, 0, {3, 1, 2}}, {4, 2, 0, {}},     {1, 5, 0, {4}}};
  for (const Case& c : kCases) {
    std::vector<float> scores = uniform(static_cast<uint64_t>(c.frames * c.classes), -2.0F, 2.0F);
    Labels target = c.target;
    target.resize(5, -1);
    const Ctc args{
        .samples = 1, .frames = c.frames, .classes = c.classes, .longest = 5, .blank = c.blank};
    const Result got = run(args, scores, target);
    const std::vector<double> wide(scores.begin(), scores.end());
    EXPECT_NEAR(got.losses[0], loss_of(c, wide), 1e-5);
    for (size_t i = 0; i < scores.size(); ++i)
      EXPECT_NEAR(got.gradients[i], slope_of(c, wide, i), 1e-5) << "element " << i;
  }
}

TEST_P(CtcKernel, CountsTheFramesOfEachSample) {
  constexpr int64_t kFrames = 5, kClasses = 37, kSamples = 6;
  const std::vector<float> scores = uniform(kSamples * kFrames * kClasses, -5.0F, 5.0F);
  const Labels targets{3, 4, -1, 9, 36, -1, 1, 1, -1, 5, -1, -1, -1, -1, -1, 7, 8, 9};
  const int64_t lengths[kSamples] = {5, 2, 3, 1, 0, 3};
  Ctc args{.samples = kSamples, .frames = kFrames, .classes = kClasses, .longest = 3};
  args.lengths = lengths;
  const Result all = run(args, scores, targets);
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t n = lengths[i] * kClasses;
    const auto* from = scores.data() + i * kFrames * kClasses;
    Ctc one{.samples = 1, .frames = lengths[i], .classes = kClasses, .longest = 3};
    const Result alone = run(one, std::vector<float>(from, from + n),
                             Labels(targets.begin() + 3 * i, targets.begin() + 3 * i + 3));
    EXPECT_EQ(all.losses[static_cast<size_t>(i)], alone.losses[0]);
    for (int64_t k = 0; k < kFrames * kClasses; ++k)
      EXPECT_EQ(all.gradients[static_cast<size_t>(i * kFrames * kClasses + k)],
                k < n ? alone.gradients[static_cast<size_t>(k)] : 0.0F);
  }
  EXPECT_EQ(all.losses[4], 0.0F) << "no frames spell nothing";
}

TEST_P(CtcKernel, LeavesOutWhatNoPathSpells) {
  Ctc args{.samples = 1, .frames = 2, .classes = 4, .longest = 2};
  Result got = run(args, std::vector<float>(8, 1.0F), {1, 1});
  EXPECT_EQ(got.losses[0], std::numeric_limits<float>::infinity());
  args.zero_infinity = true;
  got = run(args, std::vector<float>(8, 1.0F), {1, 1});
  EXPECT_EQ(got.losses[0], 0.0F);
  EXPECT_EQ(got.gradients, std::vector<float>(8, 0.0F));
}

// Probabilities below what f32 holds are still on a path.
TEST_P(CtcKernel, FollowsPathsThatAreAllButImpossible) {
  std::vector<float> scores(3 * 20, -200.0F);
  for (size_t t = 0; t < 3; ++t)
    scores[t * 20 + 19] = 200.0F;
  const Ctc args{.samples = 1, .frames = 3, .classes = 20, .longest = 1};
  const Result got = run(args, scores, {5});
  EXPECT_NEAR(got.losses[0], 1200.0 - std::log(6.0), 1e-3);
}

TENON_EACH_LEVEL(CtcKernel);

}  // namespace
}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.lamp": the share that the square of a weight has in the squares of all that
// would outlive it (Lee et al., "Layer-adaptive sparsity for the magnitude-based pruning", ICLR
// 2021, eq. 3). So scores of different layers compare, and the largest one of each is 1. For a
// channel its squares, in the layers that make and read it, are one number.
#include <numeric>
#include <vector>

#include "magnitude.hpp"

namespace tenon::pruner {
namespace {

struct Squares {
  static double of(double weight) { return weight * weight; }
  static double total(double sum) { return sum; }
};

class Lamp {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<Lamp> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(squares, Magnitude<Squares>::create(ctx, options));
    return Lamp{squares};
  }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    TN_CHECK(squares_.score(group, scores));
    std::vector<size_t> falling(scores.size());
    std::iota(falling.begin(), falling.end(), size_t{0});
    std::stable_sort(falling.begin(), falling.end(),
                     [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    double outlive = 0;  // the squares of those that go no earlier
    for (size_t c : falling) {
      outlive += scores[c];
      if (outlive > 0) scores[c] /= outlive;
    }
    return {};
  }

  Magnitude<Squares> squares_;
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(lamp,
                 tenon::pruner::Lamp,
                 "pruner.importance.lamp",
                 "squared weights over the squares of all that outlive them: compares over layers",
                 PRUNER_MAGNITUDE_OPTIONS)

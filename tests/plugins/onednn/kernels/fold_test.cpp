// SPDX-License-Identifier: Apache-2.0
// Windows added where they overlap, against an f64 loop over all numbers of the columns.

#include "kernels/fold.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Fold : public EachLevel {};

int64_t product(const int64_t (&extents)[kFoldAxes]) {
  return extents[0] * extents[1] * extents[2];
}

// The result, which begins with the bias, and the number of terms of each of its sums.
struct Want {
  std::vector<double> sums;
  std::vector<int> terms;
};

Want reference(const FoldArgs& args, const std::vector<float>& columns) {
  const int64_t plane = product(args.to), n_planes = args.images * args.channels;
  Want want;
  want.sums.resize(static_cast<uint64_t>(n_planes * plane));
  want.terms.resize(want.sums.size(), 1);
  for (int64_t i = 0; i < n_planes * plane; ++i)
    want.sums[static_cast<uint64_t>(i)] =
        args.bias == nullptr ? 0.0 : double{args.bias[i / plane % args.channels]};
  for (int64_t i = 0; i < static_cast<int64_t>(columns.size()); ++i) {
    int64_t rest = i, f[kFoldAxes], w[kFoldAxes], to = 0;
    for (int axis = kFoldAxes; axis-- > 0; rest /= args.from[axis])
      f[axis] = rest % args.from[axis];
    for (int axis = kFoldAxes; axis-- > 0; rest /= args.window[axis])
      w[axis] = rest % args.window[axis];
    bool is_inside = true;
    for (int axis = 0; axis < kFoldAxes; ++axis) {
      const int64_t at =
          f[axis] * args.strides[axis] + w[axis] * args.dilations[axis] - args.padding[axis];
      is_inside = is_inside && at >= 0 && at < args.to[axis];
      to = to * args.to[axis] + at;
    }
    if (!is_inside) continue;
    const auto at = static_cast<uint64_t>(rest * plane + to);
    want.sums[at] += double{columns[static_cast<uint64_t>(i)]};
    ++want.terms[at];
  }
  return want;
}

const FoldArgs kCases[] = {
    {.images = 2,
     .channels = 3,
     .window = {1, 4, 4},
     .from = {1, 7, 9},
     .to = {1, 14, 18},
     .strides = {1, 2, 2},
     .padding = {0, 1, 1}},
    {.images = 1,
     .channels = 5,
     .window = {1, 2, 2},
     .from = {1, 5, 300},
     .to = {1, 10, 600},
     .strides = {1, 2, 2}},
    {.images = 1,
     .channels = 1,
     .window = {1, 3, 3},
     .from = {1, 6, 33},
     .to = {1, 6, 33},
     .padding = {0, 1, 1}},
    {.images = 3,
     .channels = 2,
     .window = {1, 1, 16},
     .from = {1, 1, 601},
     .to = {1, 1, 4816},
     .strides = {1, 1, 8},
     .padding = {0, 0, 4}},
    {.images = 1,
     .channels = 2,
     .window = {3, 2, 5},
     .from = {3, 4, 11},
     .to = {7, 6, 40},
     .strides = {2, 1, 3},
     .dilations = {1, 3, 2},
     .padding = {0, 1, 2}},
    // Windows that leave numbers out between them, behind them, and in front of a long padding.
    {.images = 1,
     .channels = 2,
     .window = {1, 1, 2},
     .from = {1, 2, 5},
     .to = {1, 4, 27},
     .strides = {1, 3, 5}},
    {.images = 1,
     .channels = 1,
     .window = {1, 1, 3},
     .from = {1, 1, 9},
     .to = {1, 1, 2},
     .strides = {1, 1, 4},
     .padding = {0, 0, 17}},
    {.images = 1,
     .channels = 1,
     .window = {1, 1, 3},
     .from = {1, 1, 4},
     .to = {1, 1, 70},
     .strides = {1, 1, 16},
     .padding = {0, 0, -2}},
};

TEST_P(Fold, AgreesWithF64) {
  for (const FoldArgs& one : kCases) {
    for (const bool has_bias : {false, true}) {
      FoldArgs args = one;
      const std::vector<float> columns =
          uniform(static_cast<uint64_t>(args.images * args.channels * product(args.window) *
                                        product(args.from)),
                  -2, 2);
      const std::vector<float> bias = uniform(static_cast<uint64_t>(args.channels), -1, 1, 2);
      args.columns = columns.data();
      if (has_bias) args.bias = bias.data();
      const Want want = reference(args, columns);
      std::vector<float> y(want.sums.size() + 1, 7.0F);
      args.dst = y.data();
      fold(context_, args);

      for (uint64_t i = 0; i < want.sums.size(); ++i)
        ASSERT_NEAR(y[i], want.sums[i], 1.2e-7 * 2 * want.terms[i] * want.terms[i]) << i;
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

TEST_P(Fold, KeepsWhatIsNotFiniteWhereItIsAdded) {
  std::vector<float> columns(2 * 20, 1.0F);
  columns[3] = INFINITY;
  columns[20 + 9] = NAN;
  std::vector<float> y(40);
  fold(context_, {.columns = columns.data(),
                  .dst = y.data(),
                  .images = 1,
                  .channels = 1,
                  .window = {1, 1, 2},
                  .from = {1, 1, 20},
                  .to = {1, 1, 40},
                  .strides = {1, 1, 2}});

  for (uint64_t i = 0; i < y.size(); ++i) {
    if (i == 6)
      EXPECT_EQ(y[i], INFINITY);
    else if (i == 19)
      EXPECT_TRUE(std::isnan(y[i]));
    else
      EXPECT_EQ(y[i], 1.0F) << i;
  }
}

TENON_EACH_LEVEL(Fold);

}  // namespace
}  // namespace tenon::onednn::kernels

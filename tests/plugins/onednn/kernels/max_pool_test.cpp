// SPDX-License-Identifier: Apache-2.0
// Maxima of windows of bytes against loops.

#include "kernels/max_pool.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class MaxPool : public EachLevel {};

template <class T>
T largest(const std::vector<T>& x, const MaxPoolArgs& a, int64_t image, int64_t y, int64_t c) {
  const int64_t row = y / a.out_width * a.stride[0] - a.pad[0];
  const int64_t column = y % a.out_width * a.stride[1] - a.pad[1];
  int best = -1000;
  for (int64_t i = std::max<int64_t>(row, 0); i < std::min(row + a.kernel[0], a.height); ++i)
    for (int64_t j = std::max<int64_t>(column, 0); j < std::min(column + a.kernel[1], a.width); ++j)
      best = std::max<int>(
          best, x[static_cast<uint64_t>(((image * a.height + i) * a.width + j) * a.channels + c)]);
  return static_cast<T>(best);
}

template <class T>
void expect_maxima(const Context& context, MaxPoolArgs args) {
  std::mt19937 random(3);
  const int64_t pixels = args.images * args.height * args.width;
  std::vector<T> x(static_cast<uint64_t>(pixels * args.channels));
  for (T& byte : x)
    byte = static_cast<T>(random());
  const int64_t out_pixels = args.out_height * args.out_width;
  std::vector<T> y(static_cast<uint64_t>(args.images * out_pixels * args.channels) + 1, T{77});
  args.is_signed = std::is_signed_v<T>;
  args.src = x.data();
  args.dst = y.data();

  max_pool(context, args);

  for (uint64_t i = 0; i + 1 < y.size(); ++i) {
    const int64_t pixel = static_cast<int64_t>(i) / args.channels;
    ASSERT_EQ(y[i], largest(x, args, pixel / out_pixels, pixel % out_pixels,
                            static_cast<int64_t>(i) % args.channels))
        << i << " of " << args.channels << " channels";
  }
  EXPECT_EQ(y.back(), T{77});
}

TEST_P(MaxPool, TakesTheLargestInsideOfTheImage) {
  for (int64_t channels : {1, 5, 16, 31, 32, 64, 65, 100, 150}) {
    const MaxPoolArgs padded{.images = 2,
                             .channels = channels,
                             .height = 7,
                             .width = 6,
                             .out_height = 4,
                             .out_width = 3,
                             .kernel = {3, 3},
                             .stride = {2, 2},
                             .pad = {1, 1}};
    expect_maxima<uint8_t>(context_, padded);
    expect_maxima<int8_t>(context_, padded);
    const MaxPoolArgs oblong{.images = 1,
                             .channels = channels,
                             .height = 4,
                             .width = 9,
                             .out_height = 4,
                             .out_width = 4,
                             .kernel = {1, 2},
                             .stride = {1, 2}};
    expect_maxima<uint8_t>(context_, oblong);
  }
}

TENON_EACH_LEVEL(MaxPool);

}  // namespace
}  // namespace tenon::onednn::kernels

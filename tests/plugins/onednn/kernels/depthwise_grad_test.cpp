// SPDX-License-Identifier: Apache-2.0
// The gradient of a depthwise convolution's weights against loops in f64.

#include "kernels/depthwise_grad.h"

#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// The numbers, and how they lie in memory: f32, or the upper halves of their words.
struct Stored {
  Stored(uint64_t n, ElementType type, uint32_t seed) : numbers(uniform(n, -1, 1, seed)) {
    const size_t each = type == ElementType::kF32 ? 4 : 2;
    bytes.resize(n * each);
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, &numbers[i], 4);
      if (each == 2) word &= 0xffff0000;
      std::memcpy(&numbers[i], &word, 4);
      std::memcpy(bytes.data() + i * each, reinterpret_cast<char*>(&word) + 4 - each, each);
    }
  }
  std::vector<float> numbers;
  std::vector<char> bytes;
};

class DepthwiseGrads : public EachLevel {
 protected:
  void check(DepthwiseGradArgs args) {
    const Windows& w = args.windows;
    const auto n = static_cast<uint64_t>(args.images * args.channels);
    const Stored x(n * static_cast<uint64_t>(w.height * w.width), args.type, 1);
    const Stored dy(n * static_cast<uint64_t>(w.out_height * w.out_width), args.type, 2);
    std::vector<float> dw(static_cast<uint64_t>(args.channels * args.taps()) + 1, 7.0F);
    std::vector<char> scratch(static_cast<uint64_t>(depthwise_grad_scratch_bytes(args)));
    args.x = x.bytes.data();
    args.dy = dy.bytes.data();
    args.dw = dw.data();
    depthwise_grad(context_, args, scratch.data());
    for (int64_t c = 0; c < args.channels; ++c)
      for (int64_t t = 0; t < args.taps(); ++t) {
        const double want = sum_of(args, x.numbers, dy.numbers, c, t);
        ASSERT_NEAR(dw[static_cast<uint64_t>(c * args.taps() + t)], want,
                    2e-5 * (1 + std::fabs(want)))
            << "channel " << c << " tap " << t;
      }
    EXPECT_EQ(dw.back(), 7.0F);
  }

  static double sum_of(const DepthwiseGradArgs& args,
                       const std::vector<float>& x,
                       const std::vector<float>& dy,
                       int64_t c,
                       int64_t tap) {
    const Windows& w = args.windows;
    double sum = 0;
    for (int64_t i = 0; i < args.images; ++i)
      for (int64_t oy = 0; oy < w.out_height; ++oy)
        for (int64_t ox = 0; ox < w.out_width; ++ox) {
          const int64_t y = oy * w.stride_y - w.pad_top + tap / w.window_width * w.step_y;
          const int64_t at = ox * w.stride_x - w.pad_left + tap % w.window_width * w.step_x;
          if (!is_inside(y, w.height) || !is_inside(at, w.width)) continue;
          const int64_t pixel = (i * w.height + y) * w.width + at;
          const int64_t place = (i * w.out_height + oy) * w.out_width + ox;
          sum += static_cast<double>(x[static_cast<uint64_t>(pixel * args.channels + c)]) *
                 static_cast<double>(dy[static_cast<uint64_t>(place * args.channels + c)]);
        }
    return sum;
  }
};

struct Shape {
  int64_t images, channels, height, width, window_height, window_width, stride, step, pad;
};

DepthwiseGradArgs args_of(const Shape& s, ElementType type) {
  DepthwiseGradArgs args{.type = type, .images = s.images, .channels = s.channels};
  auto places = [&](int64_t size, int64_t window) {
    return (size + 2 * s.pad - (window - 1) * s.step - 1) / s.stride + 1;
  };
  args.windows = {.height = s.height,
                  .width = s.width,
                  .out_height = places(s.height, s.window_height),
                  .out_width = places(s.width, s.window_width),
                  .window_height = s.window_height,
                  .window_width = s.window_width,
                  .stride_y = s.stride,
                  .stride_x = s.stride,
                  .step_y = s.step,
                  .step_x = s.step,
                  .pad_top = s.pad,
                  .pad_left = s.pad};
  return args;
}

TEST_P(DepthwiseGrads, AgreeWithF64) {
  constexpr Shape kShapes[] = {
      {2, 40, 9, 11, 3, 3, 1, 1, 1}, {3, 24, 10, 7, 3, 3, 2, 1, 1},  {2, 33, 2, 2, 3, 3, 1, 1, 1},
      {1, 16, 1, 1, 3, 3, 1, 1, 1},  {2, 64, 12, 12, 5, 5, 1, 1, 2}, {1, 20, 13, 9, 7, 7, 2, 1, 3},
      {2, 8, 12, 15, 3, 3, 1, 2, 2}, {2, 3, 8, 20, 1, 9, 1, 1, 0},   {1, 100, 6, 6, 2, 3, 1, 1, 1},
      {19, 32, 4, 4, 3, 3, 1, 1, 0}, {2, 5, 3, 3, 3, 3, 3, 1, 3}};
  for (const Shape& shape : kShapes)
    for (ElementType type : {ElementType::kF32, ElementType::kBf16}) {
      SCOPED_TRACE(testing::Message() << shape.height << " x " << shape.width << " window "
                                      << shape.window_height << " channels " << shape.channels);
      check(args_of(shape, type));
      if (HasFatalFailure()) return;
    }
}

TENON_EACH_LEVEL(DepthwiseGrads);

}  // namespace
}  // namespace tenon::onednn::kernels

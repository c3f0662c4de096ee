// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of f32 and bf16 against an f64 loop, in memory that ends where images do.

#include "kernels/float_depthwise.h"

#include "guarded.h"
#include "levels.h"
#include "tiles.h"

namespace tenon::onednn::kernels {
namespace {

struct Case {
  int64_t images, channels, height, width;
  Windows windows;  // but for the sizes of images
};

Windows window(int64_t size, int64_t stride, int64_t pad) {
  Windows w;
  w.window_height = w.window_width = size;
  w.stride_y = w.stride_x = stride;
  w.pad_top = w.pad_left = pad;
  return w;
}
Windows uneven() {
  Windows w = window(2, 1, 0);
  w.window_width = 6;
  w.stride_y = 3;
  w.pad_left = 2;
  return w;
}
Windows dilated() {
  Windows w = window(3, 1, 2);
  w.step_y = w.step_x = 2;
  return w;
}
const Case kCases[] = {
    {1, 32, 6, 8, window(3, 1, 1)},  {2, 48, 7, 7, window(3, 1, 1)},
    {1, 70, 5, 9, window(3, 2, 1)},  {2, 16, 8, 6, window(3, 2, 1)},
    {1, 5, 4, 5, window(3, 1, 0)},   {1, 33, 3, 1, window(3, 1, 1)},
    {1, 40, 7, 7, window(5, 1, 2)},  {2, 33, 6, 9, window(5, 1, 2)},
    {1, 64, 5, 2, window(5, 1, 2)},  {1, 72, 9, 11, window(5, 2, 2)},
    {1, 470, 4, 6, window(3, 1, 1)},  // weights in two parts
    {1, 35, 9, 8, window(7, 1, 3)},  {2, 16, 9, 13, window(7, 2, 3)},
    {1, 20, 11, 9, window(9, 4, 4)}, {1, 34, 8, 9, uneven()},
    {2, 32, 7, 6, dilated()},        {1, 8, 5, 5, window(1, 1, 0)},
};

// Arguments over memory of their own.
class Problem {
 public:
  Problem(const Case& c, ElementType type)
      : c_(c), src_(bytes(type, pixels(c) * c.channels)), outside_(bytes(type, c.channels)) {
    Windows& w = args.windows = c.windows;
    w.height = c.height;
    w.width = c.width;
    w.out_height =
        (c.height + 2 * w.pad_top - (w.window_height - 1) * w.step_y - 1) / w.stride_y + 1;
    w.out_width = (c.width + 2 * w.pad_left - (w.window_width - 1) * w.step_x - 1) / w.stride_x + 1;
    const auto padded = static_cast<uint64_t>(float_depthwise_channels(c.channels));
    const auto taps = static_cast<uint64_t>(w.window_height * w.window_width);
    x = uniform(static_cast<uint64_t>(pixels(c) * c.channels), -1, 1, 1);
    weights_ = uniform(taps * padded, -1, 1, 2);
    bias_ = uniform(padded, -1, 1, 3);
    args.type = type;
    args.images = c.images;
    args.channels = c.channels;
    args.src = src_.data();
    args.weights = weights_.data();
    args.bias = bias_.data();
    args.outside = outside_.data();
  }

  std::vector<float> run(const Context& context) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (args.type == ElementType::kF32) {
        src_.as<float>()[i] = x[i];
      } else {
        src_.as<uint16_t>()[i] = to_bf16(x[i]);
        x[i] = from_bf16(to_bf16(x[i]));
      }
    }
    const Guarded dst(bytes(args.type, count()));
    args.dst = dst.data();
    float_depthwise(context, args);
    std::vector<float> got(static_cast<size_t>(count()));
    for (size_t i = 0; i < got.size(); ++i)
      got[i] =
          args.type == ElementType::kF32 ? dst.as<float>()[i] : from_bf16(dst.as<uint16_t>()[i]);
    return got;
  }
  int64_t count() const {
    return c_.images * args.windows.out_height * args.windows.out_width * c_.channels;
  }
  double sum(int64_t i) const {
    const Windows& w = args.windows;
    const int64_t c = i % c_.channels, column = i / c_.channels % w.out_width;
    const int64_t row = i / c_.channels / w.out_width % w.out_height;
    const int64_t image = i / c_.channels / w.out_width / w.out_height;
    const int64_t padded = float_depthwise_channels(c_.channels);
    double sum = bias_[static_cast<size_t>(c)];
    for (int64_t tap = 0; tap < w.window_height * w.window_width; ++tap) {
      const int64_t y = row * w.stride_y - w.pad_top + tap / w.window_width * w.step_y;
      const int64_t at = column * w.stride_x - w.pad_left + tap % w.window_width * w.step_x;
      if (y < 0 || y >= c_.height || at < 0 || at >= c_.width) continue;
      const int64_t place = ((image * c_.height + y) * c_.width + at) * c_.channels + c;
      sum +=
          double{x[static_cast<size_t>(place)]} * weights_[static_cast<size_t>(tap * padded + c)];
    }
    return sum;
  }

  std::vector<float> x;
  FloatDepthwiseArgs args;

 private:
  static int64_t bytes(ElementType type, int64_t n) { return n * element_bytes(type); }
  static int64_t pixels(const Case& c) { return c.images * c.height * c.width; }

  Case c_;
  Guarded src_, outside_;
  std::vector<float> weights_, bias_;
};

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBf16};

// Relative to what sums of 49 products may reach.
double tolerance(ElementType type) {
  return type == ElementType::kF32 ? 2e-5 : 1.0 / 256;
}

class FloatDepthwise : public EachLevel {};

TEST_P(FloatDepthwise, IsTheSumOfEachWindow) {
  for (const ElementType type : kTypes) {
    for (const Case& c : kCases) {
      Problem problem(c, type);
      const std::vector<float> got = problem.run(context_);
      for (int64_t i = 0; i < problem.count(); ++i) {
        const double want = problem.sum(i);
        ASSERT_NEAR(got[static_cast<size_t>(i)], want, tolerance(type) * (1 + std::abs(want)))
            << "case " << &c - kCases << ", at " << i;
      }
    }
  }
}

TEST_P(FloatDepthwise, AppliesOperationsAndThenBounds) {
  const EpilogueOp ops[] = {{.kind = EpilogueOp::Kind::kSwish, .alpha = 1},
                            {.kind = EpilogueOp::Kind::kLinear, .alpha = 2, .beta = 0.25F}};
  for (const Case& c : kCases) {
    Problem problem(c, ElementType::kF32);
    problem.args.ops = ops;
    problem.args.n_ops = 2;
    problem.args.low = 0;
    problem.args.high = 3;
    const std::vector<float> got = problem.run(context_);
    for (int64_t i = 0; i < problem.count(); ++i) {
      const double y = problem.sum(i);
      const double want = std::clamp(2 * y / (1 + std::exp(-y)) + 0.25, 0.0, 3.0);
      ASSERT_NEAR(got[static_cast<size_t>(i)], want, 1e-4) << "case " << &c - kCases;
    }
  }
}

TEST_P(FloatDepthwise, KeepsNaNWithinItsChannelAndWindow) {
  for (const ElementType type : kTypes) {
    Problem problem({1, 20, 6, 6, window(3, 1, 1)}, type);
    problem.args.low = 0;
    problem.x[(2 * 6 + 2) * 20 + 7] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> got = problem.run(context_);
    for (int64_t i = 0; i < problem.count(); ++i) {
      const int64_t x = i / 20 % 6, y = i / 20 / 6;
      const bool sees = i % 20 == 7 && std::abs(x - 2) <= 1 && std::abs(y - 2) <= 1;
      ASSERT_EQ(std::isnan(got[static_cast<size_t>(i)]), sees) << "at " << i;
    }
  }
}

TENON_EACH_LEVEL(FloatDepthwise);

}  // namespace
}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes against an f64 loop.

#include "kernels/depthwise.h"

#include <cmath>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

struct Case {
  int64_t images, channels, height, width;
  Windows windows;  // but for the sizes of images
  bool src_signed, dst_signed;
};

Windows square(int64_t taps, int64_t stride, int64_t pad) {
  Windows w;
  w.window_height = w.window_width = taps;
  w.stride_y = w.stride_x = stride;
  w.pad_top = w.pad_left = pad;
  return w;
}

std::vector<uint8_t> random_bytes(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

int value_of(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

// Arguments over memory of their own; numbers such that results cover their range.
class Problem {
 public:
  explicit Problem(const Case& c, std::vector<EpilogueOp> ops = {}) : c_(c), ops_(std::move(ops)) {
    args_.images = c.images;
    args_.channels = c.channels;
    Windows& w = args_.windows = c.windows;
    w.height = c.height;
    w.width = c.width;
    w.out_height =
        (c.height + 2 * w.pad_top - (w.window_height - 1) * w.step_y - 1) / w.stride_y + 1;
    w.out_width = (c.width + 2 * w.pad_left - (w.window_width - 1) * w.step_x - 1) / w.stride_x + 1;
    taps_ = w.window_height * w.window_width;
    args_.ops = ops_.data();
    args_.n_ops = static_cast<int>(ops_.size());
    args_.src_flip = c.src_signed ? 0x80 : 0;
    args_.dst_flip = c.dst_signed ? 0x80 : 0;
    args_.zero = 100;
    args_.low = 7;
    args_.high = 251;
    const int64_t padded = depthwise_blocks(c.channels) * kDepthwiseBlock;
    src_ = random_bytes(c.images * c.height * c.width * c.channels, 1);
    weights_ = random_bytes(c.channels * taps_, 2);
    outside_.assign(static_cast<size_t>(padded), 77);
    scales_ = uniform(static_cast<uint64_t>(padded), 1e-3F, 2e-3F, 3);
    bias_ = uniform(static_cast<uint64_t>(padded), -60, 60, 4);
    packed_.resize(static_cast<size_t>(depthwise_blocks(c.channels) * depthwise_weight_bytes(w)));
    pack_depthwise_weights(reinterpret_cast<const int8_t*>(weights_.data()), c.channels, w,
                           packed_.data());
    args_.src = src_.data();
    args_.weights = packed_.data();
    args_.scales = scales_.data();
    args_.bias = bias_.data();
    args_.outside = outside_.data();
  }

  // One guard byte follows the result.
  std::vector<uint8_t> run(const Context& context) {
    std::vector<uint8_t> dst(static_cast<size_t>(count()) + 1, 0xEE);
    args_.dst = dst.data();
    depthwise(context, args_);
    return dst;
  }
  int64_t count() const {
    return c_.images * args_.windows.out_height * args_.windows.out_width * c_.channels;
  }
  // Before what follows the scaled sum.
  double scaled_sum(int64_t i) const {
    const Windows& w = args_.windows;
    const int64_t c = i % c_.channels;
    const int64_t x = i / c_.channels % w.out_width;
    const int64_t y = i / c_.channels / w.out_width % w.out_height;
    const int64_t image = i / c_.channels / w.out_width / w.out_height;
    double sum = 0;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t row = y * w.stride_y - w.pad_top + tap / w.window_width * w.step_y;
      const int64_t column = x * w.stride_x - w.pad_left + tap % w.window_width * w.step_x;
      const bool is_inside = row >= 0 && row < c_.height && column >= 0 && column < c_.width;
      const int64_t at = ((image * c_.height + row) * c_.width + column) * c_.channels + c;
      const int byte =
          value_of(is_inside ? src_[static_cast<size_t>(at)] : uint8_t{77}, c_.src_signed);
      const int weight = value_of(weights_[static_cast<size_t>(c * taps_ + tap)], true);
      sum += (byte + (c_.src_signed ? 128 : 0)) * weight;
    }
    const auto place = static_cast<size_t>(depthwise_place(c));
    return sum * double{scales_[place]} + double{bias_[place]};
  }

 private:
  Case c_;
  std::vector<EpilogueOp> ops_;
  int64_t taps_ = 0;
  DepthwiseArgs args_;
  std::vector<uint8_t> src_, weights_, outside_;
  std::vector<int8_t> packed_;
  std::vector<float> scales_, bias_;
};

class Depthwise : public EachLevel {};

// Each byte beside the rounding of what `finish` makes of the scaled sum.
template <class Finish>
void expect_rounded(const Context& context,
                    const Case& c,
                    std::vector<EpilogueOp> ops,
                    const Finish& finish) {
  const Windows& w = c.windows;
  SCOPED_TRACE(testing::Message() << c.channels << " channels of " << c.height << "x" << c.width
                                  << ", window " << w.window_height << "x" << w.window_width
                                  << ", stride " << w.stride_y << "x" << w.stride_x << ", steps "
                                  << w.step_y << "x" << w.step_x << ", pad " << w.pad_top);
  Problem problem(c, std::move(ops));
  const std::vector<uint8_t> got = problem.run(context);
  int64_t inside = 0;
  for (int64_t i = 0; i < problem.count(); ++i) {
    const double want = std::clamp(finish(problem.scaled_sum(i)) + 100, 7.0, 251.0);
    const int byte = value_of(got[static_cast<size_t>(i)], c.dst_signed) + (c.dst_signed ? 128 : 0);
    ASSERT_NEAR(byte, want, 0.5 + 1e-4) << i;
    inside += byte > 7 && byte < 251;
  }
  EXPECT_GT(inside, problem.count() / 4);
  EXPECT_EQ(got.back(), 0xEE);
}

Windows uneven() {
  Windows w;
  w.window_height = 2;
  w.window_width = 6;
  w.stride_y = 3;
  w.pad_left = 2;
  return w;
}

Windows strided(int64_t taps, int64_t stride_y, int64_t stride_x) {
  Windows w = square(taps, stride_y, taps / 2);
  w.stride_x = stride_x;
  return w;
}

Windows dilated() {
  Windows w = square(3, 1, 2);
  w.step_y = w.step_x = 2;
  return w;
}

std::vector<Case> cases() {
  return {
      {1, 32, 6, 8, square(3, 1, 1), false, false},  {2, 48, 7, 7, square(3, 1, 1), false, false},
      {1, 70, 5, 9, square(3, 2, 1), false, true},   {2, 16, 8, 6, square(3, 2, 1), true, false},
      {1, 5, 4, 5, square(3, 1, 0), true, true},     {1, 96, 3, 3, square(3, 1, 0), false, false},
      {1, 33, 3, 1, square(3, 1, 1), false, false},  {3, 64, 9, 4, square(3, 2, 0), false, false},
      {1, 40, 7, 7, square(5, 1, 2), false, false},  {2, 33, 6, 9, square(5, 1, 2), true, true},
      {1, 64, 5, 2, square(5, 1, 2), false, false},  {1, 72, 9, 11, square(5, 2, 2), false, true},
      {1, 16, 5, 6, square(5, 2, 0), true, false},   {1, 35, 9, 8, square(7, 1, 3), false, false},
      {1, 40, 7, 9, strided(3, 2, 1), false, false}, {1, 32, 5, 8, strided(3, 1, 2), false, true},
      {1, 24, 7, 9, strided(5, 2, 1), true, false},  {1, 33, 5, 8, strided(5, 1, 2), false, false},
      {1, 20, 11, 9, square(9, 4, 4), true, true},   {1, 34, 8, 9, uneven(), false, true},
      {2, 32, 7, 6, dilated(), true, false},         {1, 8, 5, 5, square(1, 1, 0), false, false},
  };
}

TEST_P(Depthwise, RoundsTheExactSumOnce) {
  for (const Case& c : cases())
    expect_rounded(context_, c, {}, [](double y) { return y; });
}

TEST_P(Depthwise, AppliesActivationsInFrontOfTheRounding) {
  using Kind = EpilogueOp::Kind;
  const EpilogueOp steps = {.kind = Kind::kLinear, .alpha = 2.0F, .beta = 1.0F};
  for (const Case& c : cases()) {
    expect_rounded(context_, c,
                   {{.kind = Kind::kHardSwish, .alpha = 1 / 64.0F, .beta = 0.5F}, steps},
                   [](double y) { return 2 * y * std::clamp(y / 64 + 0.5, 0.0, 1.0) + 1; });
    expect_rounded(context_, c, {{.kind = Kind::kSwish, .alpha = 0.125F}},
                   [](double y) { return y / (1 + std::exp(-y / 8)); });
  }
}

TENON_EACH_LEVEL(Depthwise);

}  // namespace
}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes against an f64 loop.

#include "kernels/depthwise.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

struct Case {
  int64_t images, channels, height, width, stride, pad;
  bool src_signed, dst_signed;
};

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
  explicit Problem(const Case& c) : c_(c) {
    args_.images = c.images;
    args_.channels = c.channels;
    args_.height = c.height;
    args_.width = c.width;
    args_.stride = c.stride;
    args_.out_height = (c.height + 2 * c.pad - 3) / c.stride + 1;
    args_.out_width = (c.width + 2 * c.pad - 3) / c.stride + 1;
    args_.pad_top = args_.pad_left = c.pad;
    args_.src_flip = c.src_signed ? 0x80 : 0;
    args_.dst_flip = c.dst_signed ? 0x80 : 0;
    args_.zero = 100;
    args_.low = 7;
    args_.high = 251;
    const int64_t padded = depthwise_blocks(c.channels) * kDepthwiseBlock;
    src_ = random_bytes(c.images * c.height * c.width * c.channels, 1);
    weights_ = random_bytes(c.channels * 9, 2);
    outside_.assign(static_cast<size_t>(padded), 77);
    scales_ = uniform(static_cast<uint64_t>(padded), 1e-3F, 2e-3F, 3);
    bias_ = uniform(static_cast<uint64_t>(padded), -60, 60, 4);
    packed_.resize(static_cast<size_t>(depthwise_blocks(c.channels) * kDepthwiseWeightBytes));
    pack_depthwise_weights(reinterpret_cast<const int8_t*>(weights_.data()), c.channels,
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
  int64_t count() const { return c_.images * args_.out_height * args_.out_width * c_.channels; }
  // Before rounding, with the zero point.
  double want(int64_t i) const {
    const int64_t c = i % c_.channels;
    const int64_t x = i / c_.channels % args_.out_width;
    const int64_t y = i / c_.channels / args_.out_width % args_.out_height;
    const int64_t image = i / c_.channels / args_.out_width / args_.out_height;
    double sum = 0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t row = y * c_.stride - c_.pad + tap / 3;
      const int64_t column = x * c_.stride - c_.pad + tap % 3;
      const bool is_inside = row >= 0 && row < c_.height && column >= 0 && column < c_.width;
      const int64_t at = ((image * c_.height + row) * c_.width + column) * c_.channels + c;
      const int byte =
          value_of(is_inside ? src_[static_cast<size_t>(at)] : uint8_t{77}, c_.src_signed);
      const int weight = value_of(weights_[static_cast<size_t>(c * 9 + tap)], true);
      sum += (byte + (c_.src_signed ? 128 : 0)) * weight;
    }
    const auto place = static_cast<size_t>(depthwise_place(c));
    return sum * double{scales_[place]} + double{bias_[place]} + args_.zero;
  }

 private:
  Case c_;
  DepthwiseArgs args_;
  std::vector<uint8_t> src_, weights_, outside_;
  std::vector<int8_t> packed_;
  std::vector<float> scales_, bias_;
};

class Depthwise : public EachLevel {};

TEST_P(Depthwise, RoundsTheExactSumOnce) {
  constexpr Case kCases[] = {
      {1, 32, 6, 8, 1, 1, false, false}, {2, 48, 7, 7, 1, 1, false, false},
      {1, 70, 5, 9, 2, 1, false, true},  {2, 16, 8, 6, 2, 1, true, false},
      {1, 5, 4, 5, 1, 0, true, true},    {1, 96, 3, 3, 1, 0, false, false},
      {1, 33, 3, 1, 1, 1, false, false}, {3, 64, 9, 4, 2, 0, false, false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.channels << " channels of " << c.height << "x" << c.width
                                    << ", stride " << c.stride << ", pad " << c.pad);
    Problem problem(c);
    const std::vector<uint8_t> got = problem.run(context_);
    int64_t inside = 0;
    for (int64_t i = 0; i < problem.count(); ++i) {
      const double want = std::clamp(problem.want(i), 7.0, 251.0);
      const int byte =
          value_of(got[static_cast<size_t>(i)], c.dst_signed) + (c.dst_signed ? 128 : 0);
      ASSERT_NEAR(byte, want, 0.5 + 1e-4) << i;
      inside += byte > 7 && byte < 251;
    }
    EXPECT_GT(inside, problem.count() / 4);
    EXPECT_EQ(got.back(), 0xEE);
  }
}

TENON_EACH_LEVEL(Depthwise);

}  // namespace
}  // namespace tenon::onednn::kernels

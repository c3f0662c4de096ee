// SPDX-License-Identifier: Apache-2.0
// Products of signs against loops over numbers that are +1, -1 and, outside of an image, 0.

#include "kernels/binary_product.h"

#include <limits>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// Rows of +1 and -1 and the same as bits, `words_of(each)` words for each group of `each` numbers.
struct Signs {
  std::vector<int> numbers;
  std::vector<uint32_t> bits;

  Signs(int64_t groups, int64_t each, uint32_t seed)
      : bits(static_cast<size_t>(groups * words_of(each)), 0) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < groups * each; ++i) {
      const bool is_set = random() % 2 != 0;
      numbers.push_back(is_set ? 1 : -1);
      const int64_t word = i / each * words_of(each) + i % each / kSignsOfWord;
      if (is_set) bits[static_cast<size_t>(word)] |= 1U << (i % each % kSignsOfWord);
    }
  }
};

// A product with memory of its own; a row is `taps` pixels of `channels` numbers.
struct Problem {
  BinaryProductArgs args;
  int64_t taps, channels;
  Signs a, b;
  std::vector<uint32_t> packed;
  BorderShifts border;
  std::vector<float> scales, bias;

  Problem(int64_t pixels, int64_t n, int64_t taps_, int64_t channels_)
      : taps(taps_), channels(channels_), a(pixels, channels, 1), b(n * taps, channels, 2) {
    args.n = args.dst_stride = n;
    args.words = taps * words_of(channels);
    args.a = a.bits.data();
    args.a_stride = args.words;
    packed.assign(static_cast<size_t>(packed_binary_columns(n) * args.words), 99);
    pack_binary(b.bits.data(), n, args.words, packed.data());
    args.b = packed.data();
    const auto padded = static_cast<uint64_t>(packed_binary_columns(n));
    border.shifts.assign(padded, static_cast<int32_t>(taps * channels));
    args.shifts = border.shifts.data();
    scales = uniform(padded, 0.01F, 0.02F, 3);
    bias = uniform(padded, -2, 2, 4);
    args.scales = scales.data();
    args.bias = bias.data();
  }

  template <class T>
  std::vector<T> run(const Context& context, ElementType type) {
    std::vector<T> dst(static_cast<size_t>(args.m * args.dst_stride) + 1, T{77});
    args.dst.data = dst.data();
    args.dst.type = type;
    binary_product(context, args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }

  // a_value(row, tap, channel)
  template <class A>
  int64_t sum(const A& a_value, int64_t row, int64_t column) const {
    int64_t sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < channels; ++c)
        sum += a_value(row, tap, c) *
               b.numbers[static_cast<size_t>((column * taps + tap) * channels + c)];
    return sum;
  }
  int64_t matrix_value(int64_t row, int64_t channel) const {
    return a.numbers[static_cast<size_t>(row * channels + channel)];
  }
};

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},     {0, 4, 4},    {3, 5, 31},   {5, 17, 33},
                           {4, 64, 32},   {7, 65, 100}, {50, 81, 64}, {97, 130, 992},
                           {6, 48, 1024}, {3, 20, 4100}};

class BinaryProduct : public EachLevel {};

TEST_P(BinaryProduct, GivesTheExactSums) {
  for (const Size& size : kSizes) {
    for (bool with_popcount : {false, true}) {
      Problem problem(size.m, size.n, 1, size.k);
      problem.args.m = size.m;
      problem.args.with_popcount = with_popcount;
      const auto got = problem.run<int32_t>(context_, ElementType::kI32);
      auto a = [&](int64_t row, int64_t, int64_t c) { return problem.matrix_value(row, c); };
      for (int64_t i = 0; i < size.m * size.n; ++i)
        ASSERT_EQ(got[static_cast<size_t>(i)], problem.sum(a, i / size.n, i % size.n))
            << "at " << i << " of " << size.m << " x " << size.n << ", k " << size.k;
    }
  }
}

// Where every bit of a byte differs for longer than a byte can count.
TEST_P(BinaryProduct, CountsWhereAllSignsDiffer) {
  Problem problem(5, 20, 1, 2048);
  problem.args.m = 5;
  std::fill(problem.a.bits.begin(), problem.a.bits.end(), 0U);
  std::fill(problem.packed.begin(), problem.packed.end(), ~0U);
  for (bool with_popcount : {false, true}) {
    problem.args.with_popcount = with_popcount;
    for (int32_t sum : problem.run<int32_t>(context_, ElementType::kI32))
      ASSERT_EQ(sum, -2048);
  }
}

struct WindowCase {
  int64_t images, channels, height, width, window, stride, step, pad;
};
constexpr WindowCase kWindows[] = {
    {2, 3, 11, 11, 3, 2, 1, 1}, {1, 32, 6, 9, 3, 1, 1, 1}, {1, 70, 5, 4, 5, 1, 1, 2},
    {1, 33, 9, 8, 3, 1, 2, 2},  {3, 64, 1, 1, 3, 1, 1, 1}, {1, 5, 7, 7, 1, 2, 1, 0},
    {2, 256, 4, 6, 3, 1, 1, 1}, {1, 40, 4, 4, 2, 1, 1, 3},
};

// What is outside counts as 0: neither +1 nor -1.
TEST_P(BinaryProduct, SeesWindowsOfImagesAndNothingOutside) {
  constexpr int64_t kColumns = 37;
  for (const WindowCase& c : kWindows) {
    Problem problem(c.images * c.height * c.width, kColumns, c.window * c.window, c.channels);
    auto out = [&](int64_t extent) {
      return (extent + 2 * c.pad - c.step * (c.window - 1) - 1) / c.stride + 1;
    };
    ConvWindows& w = problem.args.windows;
    w.pixel = w.channels = words_of(c.channels);
    w.height = c.height;
    w.width = c.width;
    w.out_height = out(c.height);
    w.out_width = out(c.width);
    w.window_height = w.window_width = c.window;
    w.stride_y = w.stride_x = c.stride;
    w.step_y = w.step_x = c.step;
    w.pad_top = w.pad_left = c.pad;
    problem.args.has_windows = true;
    problem.args.m = c.images * w.out_height * w.out_width;
    problem.border = border_shifts(w, c.channels, problem.b.bits.data(), kColumns);
    problem.args.shifts = problem.border.shifts.data();
    problem.args.places = problem.border.places.data();
    auto value = [&](int64_t place, int64_t tap, int64_t channel) -> int64_t {
      const int64_t y =
          place / w.out_width % w.out_height * c.stride - c.pad + tap / c.window * c.step;
      const int64_t x = place % w.out_width * c.stride - c.pad + tap % c.window * c.step;
      if (!is_inside(y, c.height) || !is_inside(x, c.width)) return 0;
      const int64_t image = place / (w.out_width * w.out_height);
      return problem.matrix_value((image * c.height + y) * c.width + x, channel);
    };
    const auto got = problem.run<int32_t>(context_, ElementType::kI32);
    for (int64_t i = 0; i < problem.args.m * kColumns; ++i)
      ASSERT_EQ(got[static_cast<size_t>(i)], problem.sum(value, i / kColumns, i % kColumns))
          << "at " << i << ", channels " << c.channels;
  }
}

TEST_P(BinaryProduct, ScalesShiftsAndBounds) {
  constexpr int64_t kM = 13, kN = 70, kK = 90, kStride = 75;
  Problem problem(kM, kN, 1, kK);
  problem.args.m = kM;
  problem.args.dst_stride = kStride;
  problem.args.low = -1.5F;
  problem.args.high = 1.25F;
  const std::vector<float> other = uniform(kM * kN, -1, 1, 8);
  const EpilogueOp add{.kind = EpilogueOp::Kind::kAdd,
                       .alpha = 2,
                       .other = {other.data()},
                       .row_stride = kN,
                       .column_stride = 1};
  problem.args.ops = &add;
  problem.args.n_ops = 1;
  const auto real = problem.run<float>(context_, ElementType::kF32);
  problem.args.dst.quant.zero_point = 40;
  const auto unsigned_byte = problem.run<uint8_t>(context_, ElementType::kU8);
  problem.args.dst.quant.zero_point = -90;
  const auto signed_byte = problem.run<int8_t>(context_, ElementType::kS8);
  auto a = [&](int64_t row, int64_t, int64_t c) { return problem.matrix_value(row, c); };
  for (int64_t row = 0; row < kM; ++row) {
    for (int64_t column = 0; column < kStride; ++column) {
      const auto at = static_cast<size_t>(row * kStride + column);
      if (column >= kN) {  // others' columns
        ASSERT_EQ(real[at], 77);
        continue;
      }
      const auto c = static_cast<size_t>(column);
      const double sum = static_cast<double>(problem.sum(a, row, column)) * problem.scales[c] +
                         problem.bias[c] + 2 * other[static_cast<size_t>(row * kN + column)];
      const double want = std::clamp(sum, -1.5, 1.25);
      ASSERT_NEAR(real[at], want, 1e-5) << row << ", " << column;
      ASSERT_NEAR(unsigned_byte[at], want + 40, 0.5001) << row << ", " << column;
      ASSERT_NEAR(signed_byte[at], want - 90, 0.5001) << row << ", " << column;
    }
  }
}

// 0 is +1 with a threshold of 0, and so is -0; what is no number is -1.
TEST_P(BinaryProduct, TakesSignsFromNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t channels : {1, 31, 32, 33, 64, 100}) {
    constexpr int64_t kRows = 5;
    const int64_t stride = channels + 3;
    std::vector<float> x = uniform(static_cast<uint64_t>(kRows * stride), -1, 1, 5);
    const float special[] = {0.0F, -0.0F, kNan, kInfinity, -kInfinity};
    for (size_t i = 0; i < std::size(special); ++i)
      x[i * static_cast<size_t>(stride)] = special[i];
    std::vector<float> thresholds = uniform(static_cast<uint64_t>(channels), -0.5F, 0.5F, 6);
    thresholds[0] = 0;
    const int64_t words = words_of(channels);
    std::vector<uint32_t> bits(static_cast<size_t>(kRows * words), 99);
    pack_signs(context_, {x.data(), stride, thresholds.data(), channels, bits.data()}, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t c = 0; c < words * kSignsOfWord; ++c) {
        const uint32_t word = bits[static_cast<size_t>(row * words + c / kSignsOfWord)];
        const bool want = c < channels && x[static_cast<size_t>(row * stride + c)] >=
                                              thresholds[static_cast<size_t>(c)];
        ASSERT_EQ((word >> (c % kSignsOfWord)) & 1U, want ? 1U : 0U) << row << ", " << c;
      }
    }
  }
}

TENON_EACH_LEVEL(BinaryProduct);

}  // namespace
}  // namespace tenon::onednn::kernels

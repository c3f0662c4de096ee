// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values against integer loops, for matrices and for windows of images.

#include "kernels/int8_product.h"

#include <functional>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

std::vector<uint8_t> random_bytes(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> quantized(static_cast<size_t>(n));
  for (uint8_t& byte : quantized)
    byte = static_cast<uint8_t>(random());
  return quantized;
}

int value_of(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

// A product with memory of its own; `b` is [k, n], signed.
struct Problem {
  Int8ProductArgs args;
  std::vector<uint8_t> a, b;
  std::vector<int8_t> packed;
  std::vector<float> scales, bias;

  Problem(int64_t m, int64_t n, int64_t k, int64_t a_bytes) {
    args.m = m;
    args.n = n;
    args.k = k;
    args.dst_stride = n;
    a = random_bytes(a_bytes, 1);
    b = random_bytes(k * n, 2);
    const auto padded = static_cast<uint64_t>(packed_columns(n));
    scales = uniform(padded, 1e-4F, 2e-4F, 3);
    bias = uniform(padded, -20, 20, 4);
    args.a.quantized = a.data();
    args.a.stride = k;
    args.scales = scales.data();
    args.bias = bias.data();
  }

  template <class T>
  std::vector<T> run(const Context& context, ElementType type) {
    packed.assign(static_cast<size_t>(packed_int8_bytes(args.k, args.n)), 99);
    pack_int8(b.data(), args.n, 1, args.k, args.n, 0, packed.data());
    args.b = packed.data();
    std::vector<T> dst(static_cast<size_t>(args.m * args.dst_stride) + 1, T{77});
    args.dst.data = dst.data();
    args.dst.type = type;
    int8_product(context, args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }

  // a_value(row, k): the left operand less its zero point.
  template <class A>
  int64_t sum(const A& a_value, int64_t row, int64_t column) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < args.k; ++i)
      sum += a_value(row, i) *
             (value_of(b[static_cast<size_t>(i * args.n + column)], true) - int64_t{args.b_zero});
    return sum;
  }
  double real(int64_t sum, int64_t column) const {
    const auto at = static_cast<size_t>(column);
    const double y = static_cast<double>(sum) * double{scales[at]} + double{bias[at]};
    return std::clamp(y, double{args.low}, double{args.high});
  }
  int64_t matrix_value(int64_t row, int64_t i) const {
    return value_of(a[static_cast<size_t>(row * args.a.stride + i)], args.a.is_signed) -
           args.a.zero;
  }
};

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},   {3, 5, 0},    {0, 4, 4},      {4, 0, 4},     {1, 40, 7},
                           {7, 16, 64}, {13, 33, 31}, {100, 70, 384}, {25, 17, 9000}};

class Int8Product : public EachLevel {};

TEST_P(Int8Product, GivesTheExactSums) {
  for (const Size& size : kSizes) {
    for (bool is_signed : {false, true}) {
      Problem problem(size.m, size.n, size.k, size.m * size.k);
      problem.args.a.is_signed = is_signed;
      problem.args.a.zero = is_signed ? -5 : 131;
      problem.args.b_zero = is_signed ? 0 : -9;
      const auto got = problem.run<int32_t>(context_, ElementType::kI32);
      auto a = [&](int64_t row, int64_t i) { return problem.matrix_value(row, i); };
      for (int64_t i = 0; i < size.m * size.n; ++i)
        ASSERT_EQ(got[static_cast<size_t>(i)], problem.sum(a, i / size.n, i % size.n))
            << "at " << i << " of " << size.m << " x " << size.n << ", k " << size.k;
    }
  }
}

// What saturates where pairs are added in 16 bits.
TEST_P(Int8Product, TakesTheLargestIntegers) {
  for (const int top : {127, -128}) {
    Problem problem(9, 20, 64, 9 * 64);
    std::fill(problem.a.begin(), problem.a.end(), uint8_t{255});
    std::fill(problem.b.begin(), problem.b.end(), static_cast<uint8_t>(top));
    const auto got = problem.run<int32_t>(context_, ElementType::kI32);
    for (int32_t sum : got)
      ASSERT_EQ(sum, 64 * 255 * top);
  }
}

TEST_P(Int8Product, ScalesShiftsAndBounds) {
  for (const Size& size : kSizes) {
    Problem problem(size.m, size.n, size.k, size.m * (size.k + 3));
    problem.args.a.stride = size.k + 3;
    problem.args.a.zero = 120;
    problem.args.dst_stride = size.n;
    problem.args.low = -30;
    problem.args.high = 45;
    auto a = [&](int64_t row, int64_t i) { return problem.matrix_value(row, i); };
    const auto real = problem.run<float>(context_, ElementType::kF32);
    problem.args.dst.quant.zero_point = 40;
    const auto byte = problem.run<uint8_t>(context_, ElementType::kU8);
    problem.args.dst.quant.zero_point = -90;
    const auto signed_byte = problem.run<int8_t>(context_, ElementType::kS8);
    for (int64_t i = 0; i < size.m * size.n; ++i) {
      const auto at = static_cast<size_t>(i);
      const double want = problem.real(problem.sum(a, i / size.n, i % size.n), i % size.n);
      ASSERT_NEAR(real[at], want, 2e-5) << "at " << i;
      ASSERT_NEAR(byte[at], std::clamp(want + 40, 0.0, 255.0), 0.5001) << "at " << i;
      ASSERT_NEAR(signed_byte[at], std::clamp(want - 90, -128.0, 127.0), 0.5001) << "at " << i;
    }
  }
}

double sigmoid(double y) {
  return 1 / (1 + std::exp(-y));
}

// Activations, sums and products with numbers of all types behind the sums.
TEST_P(Int8Product, DoesWhatFollows) {
  using Kind = EpilogueOp::Kind;
  constexpr int64_t kM = 14, kN = 37;
  const std::vector<float> reals = uniform(kM * kN, -1, 1, 8);
  const std::vector<uint8_t> bytes = random_bytes(kM * kN, 9);
  const Quant quant{0.02F, 100};
  struct Case {
    EpilogueOp op;
    std::function<double(double y, size_t i)> want;
  };
  const Case cases[] = {
      {{.kind = Kind::kClip, .alpha = -1, .beta = 2},
       [](double y, size_t) { return std::clamp(y, -1.0, 2.0); }},
      {{.kind = Kind::kLeakyRelu, .alpha = 0.25F},
       [](double y, size_t) { return y > 0 ? y : y / 4; }},
      {{.kind = Kind::kLinear, .alpha = 3, .beta = -1}, [](double y, size_t) { return 3 * y - 1; }},
      {{.kind = Kind::kHardSigmoid, .alpha = 0.25F, .beta = 0.5F},
       [](double y, size_t) { return std::clamp(y / 4 + 0.5, 0.0, 1.0); }},
      {{.kind = Kind::kHardSwish, .alpha = 0.25F, .beta = 0.5F},
       [](double y, size_t) { return y * std::clamp(y / 4 + 0.5, 0.0, 1.0); }},
      {{.kind = Kind::kSwish, .alpha = 2}, [](double y, size_t) { return y * sigmoid(2 * y); }},
      {{.kind = Kind::kSigmoid}, [](double y, size_t) { return sigmoid(y); }},
      {{.kind = Kind::kTanh}, [](double y, size_t) { return std::tanh(y); }},
      {{.kind = Kind::kGeluErf},
       [](double y, size_t) { return y * (0.5 + 0.5 * std::erf(y * std::sqrt(0.5))); }},
      {{.kind = Kind::kGeluTanh},
       [](double y, size_t) {
         const double t = std::tanh(std::sqrt(2 / M_PI) * (y + 0.044715 * y * y * y));
         return y * (0.5 + 0.5 * t);
       }},
      {{.kind = Kind::kAdd,
        .alpha = 2,
        .other = {reals.data()},
        .row_stride = kN,
        .column_stride = 1},
       [&](double y, size_t i) { return y + 2 * double{reals[i]}; }},
      {{.kind = Kind::kMul, .other = {reals.data() + 5}},
       [&](double y, size_t) { return y * double{reals[5]}; }},
      {{.kind = Kind::kAdd,
        .alpha = 1,
        .other = {bytes.data(), ElementType::kU8, quant},
        .row_stride = kN,
        .column_stride = 1},
       [&](double y, size_t i) { return y + 0.02 * (bytes[i] - 100.0); }},
      {{.kind = Kind::kMul,
        .other = {bytes.data(), ElementType::kS8, quant},
        .row_stride = kN,
        .column_stride = 1},
       [&](double y, size_t i) { return y * 0.02 * (value_of(bytes[i], true) - 100.0); }},
  };
  for (const Case& c : cases) {
    Problem problem(kM, kN, 31, kM * 31);
    problem.args.a.zero = 128;
    for (float& number : problem.bias)
      number /= 5;
    const EpilogueOp ops[] = {c.op, {.kind = Kind::kLinear, .alpha = 0.5F}};
    problem.args.ops = ops;
    problem.args.n_ops = 2;
    auto a = [&](int64_t row, int64_t i) { return problem.matrix_value(row, i); };
    const auto got = problem.run<float>(context_, ElementType::kF32);
    for (int64_t i = 0; i < kM * kN; ++i) {
      const auto at = static_cast<size_t>(i);
      const double y = problem.real(problem.sum(a, i / kN, i % kN), i % kN);
      ASSERT_NEAR(got[at], c.want(y, at) / 2, 1e-4)
          << "at " << i << ", kind " << static_cast<int>(c.op.kind);
    }
  }
}

struct WindowCase {
  int64_t images, groups, channels, extent, window, stride, step, pad;
};
constexpr WindowCase kWindows[] = {{2, 1, 3, 11, 3, 2, 1, 1},
                                   {1, 1, 16, 6, 3, 1, 1, 1},
                                   {1, 1, 5, 9, 3, 1, 2, 2},
                                   {2, 3, 8, 5, 3, 1, 1, 1},
                                   {1, 1, 4, 7, 1, 2, 1, 0}};

// The bias alone is what goes in: from where nothing is left of the result to beyond all steps.
TEST_P(Int8Product, SwishHoldsFarOut) {
  std::vector<float> x = {0.0F,   -0.0F, 1e-30F, -1e-30F, 1e30F,
                          -1e30F, 3e38F, -3e38F, -86.6F,  -90.0F};
  for (int i = -8000; i < 8000; ++i)
    x.push_back(static_cast<float>(i) / 64);
  const auto n = static_cast<int64_t>(x.size());
  Problem problem(1, n, 4, 4);
  std::fill(problem.scales.begin(), problem.scales.end(), 0.0F);
  std::copy(x.begin(), x.end(), problem.bias.begin());
  const EpilogueOp swish = {.kind = EpilogueOp::Kind::kSwish, .alpha = 1};
  problem.args.ops = &swish;
  problem.args.n_ops = 1;
  const auto got = problem.run<float>(context_, ElementType::kF32);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = double{x[i]} * sigmoid(double{x[i]});
    ASSERT_NEAR(got[i], want, 1e-6 * std::max(std::abs(want), 0.1)) << x[i];
  }
}

TEST_P(Int8Product, SeesWindowsOfImages) {
  for (const WindowCase& c : kWindows) {
    const int64_t out = (c.extent + 2 * c.pad - c.step * (c.window - 1) - 1) / c.stride + 1;
    const int64_t pixel = c.groups * c.channels;
    const int64_t k = c.window * c.window * c.channels;
    Problem problem(c.images * out * out, 24, k, c.images * c.extent * c.extent * pixel);
    const int64_t group = c.groups - 1;
    Int8Rows& rows = problem.args.a;
    rows.quantized = problem.a.data() + group * c.channels;
    rows.zero = 128;
    rows.has_windows = true;
    ConvWindows& w = rows.windows;
    w.pixel = pixel;
    w.channels = c.channels;
    w.height = w.width = c.extent;
    w.out_height = w.out_width = out;
    w.window_height = w.window_width = c.window;
    w.stride_y = w.stride_x = c.stride;
    w.step_y = w.step_x = c.step;
    w.pad_top = w.pad_left = c.pad;
    auto value = [&](int64_t place, int64_t i) -> int64_t {
      const int64_t tap = i / c.channels;
      const int64_t y = place / out % out * c.stride - c.pad + tap / c.window * c.step;
      const int64_t x = place % out * c.stride - c.pad + tap % c.window * c.step;
      if (y < 0 || y >= c.extent || x < 0 || x >= c.extent) return 0;
      const int64_t at = ((place / out / out * c.extent + y) * c.extent + x) * pixel +
                         group * c.channels + i % c.channels;
      return problem.a[static_cast<size_t>(at)] - 128;
    };
    const auto got = problem.run<int32_t>(context_, ElementType::kI32);
    for (int64_t i = 0; i < problem.args.m * 24; ++i)
      ASSERT_EQ(got[static_cast<size_t>(i)], problem.sum(value, i / 24, i % 24)) << "at " << i;
  }
}

TEST_P(Int8Product, WritesBetweenTheColumnsOfOthers) {
  Problem problem(5, 12, 20, 5 * 20);
  problem.args.dst_stride = 30;
  const auto got = problem.run<int32_t>(context_, ElementType::kI32);
  auto a = [&](int64_t row, int64_t i) { return problem.matrix_value(row, i); };
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t column = 0; column < 30; ++column)
      ASSERT_EQ(got[static_cast<size_t>(row * 30 + column)],
                column < 12 ? problem.sum(a, row, column) : 77);
}

TEST(Int8Packing, FlipsUnsignedIntegers) {
  const std::vector<uint8_t> quantized = {0, 255, 128, 3, 4, 5};  // [3, 2]
  std::vector<int8_t> packed(static_cast<size_t>(packed_int8_bytes(3, 2)), 9);
  pack_int8(quantized.data(), 2, 1, 3, 2, 0x80, packed.data());
  EXPECT_EQ(packed[0], -128);  // k 0 of column 0
  EXPECT_EQ(packed[1], 0);     // k 1
  EXPECT_EQ(packed[2], 127);   // column 1
  EXPECT_EQ(packed[2 * kInt8Panel], 4 - 128);
  EXPECT_EQ(packed[2 * kInt8Panel + 1], 0);  // there is no k 3
}

TENON_EACH_LEVEL(Int8Product);

}  // namespace
}  // namespace tenon::onednn::kernels

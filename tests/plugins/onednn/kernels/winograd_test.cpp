// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by minimal filtering, and both gradients, against f64 loops.

#include "kernels/winograd.h"

#include <bit>
#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

float rounded_to_bf16(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000U;
  std::memcpy(&value, &u, 4);
  return value;
}

// Numbers as they are stored, and as they are.
struct Data {
  std::vector<float> numbers;
  std::vector<uint16_t> halves;
  ElementType type;

  Data(uint64_t n, ElementType stored, uint32_t seed) : type(stored) {
    numbers = uniform(n, -1, 1, seed);
    if (type == ElementType::kF32) return;
    halves.resize(n);
    for (uint64_t i = 0; i < n; ++i) {
      numbers[i] = rounded_to_bf16(numbers[i]);
      halves[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(numbers[i]) >> 16);
    }
  }
  const void* data() const {
    return type == ElementType::kF32 ? static_cast<const void*>(numbers.data()) : halves.data();
  }
};

class Case {
 public:
  Case(const WinogradShape& shape, ElementType type)
      : s(shape),
        src(count(s.height, s.width, s.in), type, 1),
        dst(count(s.out_height, s.out_width, s.out), type, 2),
        weights(uniform(static_cast<uint64_t>(s.in * s.out * 9), -1, 1, 3)) {}

  uint64_t count(int64_t height, int64_t width, int64_t channels) const {
    return static_cast<uint64_t>(s.images * height * width * channels);
  }
  // Calls f(position in src, position in dst, position in weights) for each product of the sum.
  template <class F>
  void each_product(const F& f) const {
    for (int64_t n = 0; n < s.images; ++n)
      for (int64_t y = 0; y < s.out_height; ++y)
        for (int64_t x = 0; x < s.out_width; ++x)
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t from_y = y + tap / 3 - s.pad_top;
            const int64_t from_x = x + tap % 3 - s.pad_left;
            if (from_y < 0 || from_y >= s.height || from_x < 0 || from_x >= s.width) continue;
            const int64_t from = ((n * s.height + from_y) * s.width + from_x) * s.in;
            const int64_t to = ((n * s.out_height + y) * s.out_width + x) * s.out;
            for (int64_t i = 0; i < s.in; ++i)
              for (int64_t o = 0; o < s.out; ++o)
                f(static_cast<uint64_t>(from + i), static_cast<uint64_t>(to + o),
                  static_cast<uint64_t>((o * s.in + i) * 9 + tap));
          }
  }

  WinogradShape s;
  Data src, dst;
  std::vector<float> weights;
};

// The error of the whole, as a share of its size.
double apart(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (uint64_t i = 0; i < got.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

std::vector<float> as_floats(const void* stored, uint64_t n, ElementType type) {
  std::vector<float> numbers(n);
  for (uint64_t i = 0; i < n; ++i) {
    if (type == ElementType::kF32)
      numbers[i] = static_cast<const float*>(stored)[i];
    else
      numbers[i] = std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(stored)[i]} << 16);
  }
  return numbers;
}

class WinogradKernels : public EachLevel {
 protected:
  // f32 at each level; bf16 where the CPU has its products.
  std::vector<ElementType> types() const {
    if (GetParam() == Level::kAvx512 && instructions().avx512_bf16)
      return {ElementType::kF32, ElementType::kBf16};
    return {ElementType::kF32};
  }
  static double tolerance(ElementType type) { return type == ElementType::kF32 ? 2e-6 : 8e-3; }

  std::vector<float> convolve(const Winograd& conv,
                              const Case& c,
                              const void* src,
                              bool transposed,
                              Winograd::Operands with,
                              uint64_t n) const {
    std::vector<char> packed(static_cast<uint64_t>(conv.packed_bytes()));
    std::vector<char> scratch(static_cast<uint64_t>(conv.convolve_bytes()), '\x7f');
    const WinogradWeights strides{c.s.in * 9, 9, 1};
    const WinogradWeights back{9, c.s.in * 9, 1};
    conv.pack(context_, c.weights.data(), transposed ? back : strides, transposed, packed.data());
    std::vector<float> dst(n + 16, 7.0F);
    with.src = src;
    with.packed = packed.data();
    with.dst = dst.data();
    conv.convolve(context_, with, scratch.data());
    EXPECT_EQ(dst[n], 7.0F);
    return as_floats(dst.data(), n, c.src.type);
  }
};

constexpr WinogradShape kShapes[] = {
    {2, 8, 8, 8, 8, 1, 1, 32, 16},  {3, 5, 7, 5, 7, 1, 1, 16, 48},
    {1, 9, 6, 7, 4, 0, 0, 16, 80},  {2, 4, 3, 6, 5, 2, 2, 32, 32},
    {5, 1, 1, 1, 1, 1, 1, 16, 144}, {1, 40, 37, 40, 36, 1, 0, 16, 16},
};

TEST_P(WinogradKernels, ConvolvesAsTheSumDoes) {
  for (ElementType type : types()) {
    for (const WinogradShape& shape : kShapes) {
      const Case c(shape, type);
      const std::vector<float> bias = uniform(static_cast<uint64_t>(shape.out), -1, 1, 4);
      std::vector<double> want(c.dst.numbers.size());
      for (uint64_t i = 0; i < want.size(); ++i)
        want[i] = bias[i % bias.size()] + c.dst.numbers[i];
      c.each_product([&](uint64_t from, uint64_t to, uint64_t w) {
        want[to] += static_cast<double>(c.src.numbers[from]) * c.weights[w];
      });
      for (double& value : want)
        value = std::max(value, 0.0);
      const Winograd conv(shape, type, 3);
      std::vector<float> got =
          convolve(conv, c, c.src.data(), false,
                   {.bias = bias.data(), .add = c.dst.data(), .relu = true}, want.size());
      EXPECT_LT(apart(got, want), tolerance(type)) << shape.height << " x " << shape.width;
    }
  }
}

TEST_P(WinogradKernels, GivesTheGradientOfTheSource) {
  for (ElementType type : types()) {
    for (const WinogradShape& shape : kShapes) {
      const Case c(shape, type);
      std::vector<double> want(c.src.numbers.size());
      c.each_product([&](uint64_t from, uint64_t to, uint64_t w) {
        want[from] += static_cast<double>(c.dst.numbers[to]) * c.weights[w];
      });
      const WinogradShape back{shape.images,       shape.out_height, shape.out_width,
                               shape.height,       shape.width,      2 - shape.pad_top,
                               2 - shape.pad_left, shape.out,        shape.in};
      const Winograd conv(back, type, 2);
      std::vector<float> got = convolve(conv, c, c.dst.data(), true, {}, want.size());
      EXPECT_LT(apart(got, want), tolerance(type)) << shape.height << " x " << shape.width;
    }
  }
}

TEST_P(WinogradKernels, GivesTheGradientOfTheWeights) {
  for (ElementType type : types()) {
    for (const WinogradShape& shape : kShapes) {
      const Case c(shape, type);
      std::vector<double> want(c.weights.size());
      c.each_product([&](uint64_t from, uint64_t to, uint64_t w) {
        want[w] += static_cast<double>(c.src.numbers[from]) * c.dst.numbers[to];
      });
      const Winograd conv(shape, type, 2);
      std::vector<char> scratch(static_cast<uint64_t>(conv.gradient_bytes()), '\x7f');
      std::vector<float> got(want.size() + 1, 7.0F);
      conv.weight_gradient(context_, c.src.data(), c.dst.data(), got.data(), {shape.in * 9, 9, 1},
                           scratch.data());
      EXPECT_EQ(got.back(), 7.0F);
      got.pop_back();
      EXPECT_LT(apart(got, want), tolerance(type)) << shape.height << " x " << shape.width;
    }
  }
}

TENON_EACH_LEVEL(WinogradKernels);

}  // namespace
}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers on AMX tiles against loops in f64: sizes around blocks, panels, steps and
// pieces of k, the bound of the header over all exponents, rows that parts cannot say, epilogues.

#include "kernels/bf16x6_product.h"

#include <functional>
#include <limits>

#include "kernels/float_product.h"
#include "tiles.h"

namespace tenon::onednn::kernels {
namespace {

using Bf16x6 = OnTiles;
constexpr double kEpsilon = 0x1p-24;
constexpr int64_t kColumns = 64;  // of a group of the right operand
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},      {15, 33, 64},   {16, 32, 128},  {17, 31, 63},
                           {32, 64, 65},   {33, 70, 512},  {48, 32, 513},  {65, 96, 1536},
                           {70, 600, 100}, {300, 40, 700}, {1100, 64, 32}, {1100, 33, 600}};

struct Problem {
  Size size;
  Guarded a;
  std::vector<float> right;  // [k, n]
  std::vector<float> packed;
  std::vector<float> scales, bias;
  SplitProductArgs args;

  explicit Problem(const Size& of)
      : size(of),
        a(static_cast<size_t>(of.m * of.k) * sizeof(float)),
        right(uniform(static_cast<uint64_t>(of.k * of.n), -1, 1, 5)) {
    const auto left = uniform(static_cast<uint64_t>(of.m * of.k), -2, 2, 6);
    std::memcpy(a.data(), left.data(), left.size() * sizeof(float));
    const auto padded = static_cast<uint64_t>(float_columns(of.n));
    scales = uniform(padded, 0.5F, 1, 3);
    bias = uniform(padded, -2, 2, 4);
    args.a = a.as<float>();
    args.a_stride = of.k;
    args.m = of.m;
    args.n = of.n;
    args.k = of.k;
    args.cut = cut_product(of.m, of.n, of.k, 2);
    args.epilogue.scales = scales.data();
    args.epilogue.bias = bias.data();
    args.epilogue.dst_stride = of.n;
    pack();
  }

  void pack() {
    ASSERT_TRUE(have_parts(right.data(), size.k * size.n));
    const FloatWeights weights{right.data(), size.k, size.n, size.n, 1};
    packed.assign(static_cast<size_t>(packed_float_bytes(weights, kColumns)) / sizeof(float), NAN);
    pack_floats(weights, kColumns, packed.data());
    args.b = {packed.data(), kColumns, size.k * kColumns, kColumns};
  }

  float* left(int64_t row) const { return a.as<float>() + row * size.k; }
  // The sum of a * b, or of their magnitudes.
  double sum(int64_t row, int64_t column, bool of_magnitudes = false) const {
    double s = 0;
    for (int64_t i = 0; i < size.k; ++i) {
      const double product =
          double{left(row)[i]} * double{right[static_cast<size_t>(i * size.n + column)]};
      s += of_magnitudes ? std::fabs(product) : product;
    }
    return s;
  }
  double real(size_t i) const {
    const auto row = static_cast<int64_t>(i) / size.n, column = static_cast<int64_t>(i) % size.n;
    const auto at = static_cast<size_t>(column);
    return sum(row, column) * double{scales[at]} + double{bias[at]};
  }

  template <class T>
  std::vector<T> run(ElementType to, Parallel parallel = {}) {
    std::vector<T> dst(static_cast<size_t>(size.m * size.n) + 1, T{77});
    args.epilogue.dst.data = dst.data();
    args.epilogue.dst.type = to;
    bf16x6_product({nullptr, parallel}, args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }
};

TEST_F(Bf16x6, IsWithinItsBound) {
  for (const Size& size : kSizes) {
    Problem problem(size);
    std::fill(problem.scales.begin(), problem.scales.end(), 1.0F);
    std::fill(problem.bias.begin(), problem.bias.end(), 0.0F);
    const auto got = problem.run<float>(ElementType::kF32);
    const auto steps = static_cast<double>(split_steps(size.k));
    for (size_t i = 0; i < got.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / size.n, column = static_cast<int64_t>(i) % size.n;
      const double bound = (6 * steps + 36) * kEpsilon * problem.sum(row, column, true);
      ASSERT_NEAR(got[i], problem.sum(row, column), bound)
          << "at " << i << " of " << size.m << " x " << size.n << ", k " << size.k;
    }
  }
}

// On average no worse than adding one product after the other in f32.
TEST_F(Bf16x6, IsNoLessAccurateThanSumsInF32) {
  Problem problem({64, 64, 1536});
  std::fill(problem.scales.begin(), problem.scales.end(), 1.0F);
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0F);
  const auto got = problem.run<float>(ElementType::kF32);
  double of_tiles = 0, of_floats = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / 64, column = static_cast<int64_t>(i) % 64;
    float one_by_one = 0;
    for (int64_t k = 0; k < 1536; ++k)
      one_by_one = std::fma(problem.left(row)[k],
                            problem.right[static_cast<size_t>(k * 64 + column)], one_by_one);
    const double want = problem.sum(row, column);
    of_tiles += std::pow(got[i] - want, 2);
    of_floats += std::pow(one_by_one - want, 2);
  }
  EXPECT_LE(of_tiles, of_floats);
}

// One product each: x * 1 is x to the last bit where its parts are normal numbers, and beyond these
// loses what is below the smallest one.
TEST_F(Bf16x6, KeepsNumbersOfAllExponents) {
  constexpr int64_t kRows = 20000;
  Problem problem({kRows, 1, 1});
  problem.right = {1.0F};
  problem.pack();
  problem.scales.assign(problem.scales.size(), 1.0F);
  problem.bias.assign(problem.bias.size(), 0.0F);
  std::mt19937 random(11);
  for (int64_t i = 0; i < kRows; ++i) {
    auto bits = static_cast<uint32_t>(random());
    std::memcpy(problem.left(i), &bits, sizeof bits);
  }
  const auto got = problem.run<float>(ElementType::kF32);
  for (int64_t i = 0; i < kRows; ++i) {
    const float x = *problem.left(i), y = got[static_cast<size_t>(i)];
    if (std::isnan(x))
      ASSERT_TRUE(std::isnan(y)) << i;
    else if (std::isinf(x) || std::fabs(x) >= 0x1p-100F)
      ASSERT_EQ(y, x);
    else
      ASSERT_NEAR(y, x, 0x1p-125);
  }
}

// Numbers whose parts are denormal stand beside others: they lose no more than the smallest normal
// number each, and touch nothing else. Dead channels of published networks are of such weights.
TEST_F(Bf16x6, NumbersNearTheDenormalOnesStayApart) {
  Problem problem({33, 34, 64});
  std::mt19937 random(12);
  auto draw = [&] {  // from 2^-149 to 1, or 0
    const float x = std::ldexp(static_cast<float>(random() % 0x1000000) - 0x1p23F,
                               -23 - static_cast<int>(random() % 150));
    return random() % 8 == 0 ? 0.0F : x;
  };
  for (float& x : problem.right)
    x = draw();
  for (int64_t i = 0; i < 33 * 64; ++i)
    problem.left(0)[i] = draw();
  problem.pack();
  std::fill(problem.scales.begin(), problem.scales.end(), 1.0F);
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0F);
  const auto got = problem.run<float>(ElementType::kF32);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / 34, column = static_cast<int64_t>(i) % 34;
    const double bound = 48 * kEpsilon * problem.sum(row, column, true) + 64 * 0x1p-125;
    ASSERT_NEAR(got[i], problem.sum(row, column), bound) << i;
  }
}

// What f32 makes of infinities, NaN and the largest numbers, in each piece of k.
TEST_F(Bf16x6, MultipliesRowsThatPartsCannotSay) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const Size& size : {Size{45, 70, 96}, Size{45, 70, 1100}}) {
    Problem problem(size);
    const auto clean = problem.run<float>(ElementType::kF32);
    const std::pair<int64_t, float> bad[] = {
        {3, kInfinity}, {17, -kInfinity}, {32, NAN}, {40, kMost}, {44, -kMost}};
    for (const auto& [row, x] : bad)
      problem.left(row)[(row * 29) % size.k] = x;
    const auto got = problem.run<float>(ElementType::kF32);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / size.n;
      const auto* const found = std::find_if(std::begin(bad), std::end(bad),
                                             [&](const auto& b) { return b.first == row; });
      if (found == std::end(bad)) {
        ASSERT_EQ(got[i], clean[i]);
        continue;
      }
      const double want = problem.real(i);
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got[i])) << i;
      else if (std::isinf(want))
        ASSERT_EQ(got[i], want) << i;
      else
        ASSERT_NEAR(got[i], want, 1e-5 * std::fabs(want)) << i;
    }
  }
}

// [rows, columns] as [columns, rows], at the end of its memory.
struct Transposed {
  Guarded memory;
  float* data;

  Transposed(const float* from, int64_t rows, int64_t columns)
      : memory(rows * columns * 4), data(memory.as<float>()) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        data[column * rows + row] = from[row * columns + column];
  }
};

// Neither packed nor in an order of its own: rows or columns of both operands may be dense.
TEST_F(Bf16x6, ReadsOperandsWhereTheyLie) {
  for (const Size& size : kSizes) {
    Problem problem(size);
    const auto want = problem.run<float>(ElementType::kF32);
    const Transposed columns(problem.left(0), size.m, size.k);
    const Transposed right(problem.right.data(), size.k, size.n);
    const Transposed rows(right.data, size.n, size.k);
    for (bool is_left_transposed : {false, true}) {
      for (bool is_right_transposed : {false, true}) {
        SplitProductArgs& args = problem.args;
        args.a = is_left_transposed ? columns.data : problem.left(0);
        args.a_stride = is_left_transposed ? size.m : size.k;
        args.a_is_transposed = is_left_transposed;
        args.b = {.data = is_right_transposed ? right.data : rows.data,
                  .columns = size.n,
                  .stride = is_right_transposed ? size.k : size.n,
                  .is_transposed = is_right_transposed,
                  .has_parts = false};
        const auto got = problem.run<float>(ElementType::kF32);
        ASSERT_EQ(got, want) << size.m << " x " << size.n << ", k " << size.k << ", transposed "
                             << is_left_transposed << " and " << is_right_transposed;
      }
    }
  }
}

// Rows, and columns with those beside them in their panel.
TEST_F(Bf16x6, MultipliesOnVectorsWhatPartsCannotSay) {
  const Size size{45, 70, 1100};
  Problem problem(size);
  const auto clean = problem.run<float>(ElementType::kF32);
  problem.left(17)[3] = kInfinity;
  problem.right[static_cast<size_t>(1050 * size.n + 40)] = NAN;
  const Transposed columns(problem.left(0), size.m, size.k);
  const Transposed right(problem.right.data(), size.k, size.n);
  for (bool is_transposed : {false, true}) {
    if (is_transposed) problem.args.a = columns.data;
    problem.args.a_is_transposed = is_transposed;
    problem.args.a_stride = is_transposed ? size.m : size.k;
    problem.args.b = {.data = is_transposed ? right.data : problem.right.data(),
                      .columns = size.n,
                      .stride = is_transposed ? size.k : size.n,
                      .is_transposed = is_transposed,
                      .has_parts = false};
    const auto got = problem.run<float>(ElementType::kF32);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / size.n, column = static_cast<int64_t>(i) % size.n;
      if (row != 17 && column / kTilePanel != 1)
        ASSERT_EQ(got[i], clean[i]) << i;
      else if (column == 40)
        ASSERT_TRUE(std::isnan(got[i])) << i;
      else if (row == 17)
        ASSERT_EQ(got[i], problem.real(i)) << i;
      else
        ASSERT_NEAR(got[i], problem.real(i), 1e-3) << i;
    }
  }
}

TEST_F(Bf16x6, RefusesWeightsThatPartsCannotSay) {
  for (float x : {kInfinity, NAN, std::numeric_limits<float>::max(), -0x1.ffp127F})
    EXPECT_FALSE(have_parts(&x, 1)) << x;
  for (float x : {0.0F, 0x1.fefffep127F, 0x1p-149F, -1.0F})
    EXPECT_TRUE(have_parts(&x, 1)) << x;
}

TEST_F(Bf16x6, DoesWhatFollows) {
  using Kind = EpilogueOp::Kind;
  for (const Size& size : {Size{64, 64, 96}, Size{45, 70, 1100}}) {
    const auto count = static_cast<uint64_t>(size.m * size.n);
    const std::vector<float> others = uniform(count, -3, 3, 8);
    struct Case {
      EpilogueOp op;
      std::function<double(double, size_t)> want;
    };
    const Case cases[] = {
        {{.kind = Kind::kGeluErf},
         [](double y, size_t) { return y * (0.5 + 0.5 * std::erf(y * std::sqrt(0.5))); }},
        {{.kind = Kind::kAdd,
          .alpha = 0.5F,
          .other = {others.data()},
          .row_stride = size.n,
          .column_stride = 1},
         [&](double y, size_t i) { return y + 0.5 * double{others[i]}; }},
        {{.kind = Kind::kMul, .other = {others.data()}, .column_stride = 1},
         [&](double y, size_t i) { return y * double{others[i % static_cast<size_t>(size.n)]}; }},
    };
    for (const Case& c : cases) {
      Problem problem(size);
      problem.args.epilogue.ops = &c.op;
      problem.args.epilogue.n_ops = 1;
      const auto got = problem.run<float>(ElementType::kF32);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], c.want(problem.real(i), i), 1e-4) << i;
      problem.args.epilogue.dst.quant = {1, 40};
      const auto bytes = problem.run<uint8_t>(ElementType::kU8);
      for (size_t i = 0; i < bytes.size(); ++i)
        ASSERT_NEAR(bytes[i], std::clamp(c.want(problem.real(i), i) + 40, 0.0, 255.0), 0.501) << i;
    }
  }
}

struct Geometry {
  ConvWindows windows;
  int64_t images, columns;
};
// {height, width, out_height, out_width, window_height, window_width, stride_y, stride_x, step_y,
//  step_x, pad_top, pad_left}, elements between pixels, channels
const Geometry kGeometries[] = {
    {{{14, 14, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1}, 64, 64}, 2, 64},  //
    {{{15, 14, 8, 7, 3, 3, 2, 2, 1, 1, 1, 1}, 32, 32}, 2, 33},    // strides
    {{{14, 14, 7, 7, 1, 1, 2, 2, 1, 1, 0, 0}, 256, 256}, 3, 96},  // of one pixel
    {{{12, 17, 8, 13, 3, 3, 1, 1, 2, 2, 0, 0}, 96, 64}, 2, 32},   // dilated, gaps between pixels
    {{{6, 6, 7, 6, 3, 2, 1, 1, 1, 1, 2, 1}, 32, 32}, 2, 32},      // more padding in front
    {{{3, 3, 7, 7, 1, 1, 1, 1, 1, 1, 2, 2}, 32, 32}, 1, 32},      // windows outside of the image
    {{{7, 7, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1}, 512, 512}, 1, 40},    // pieces of k
};

// One number is infinite: all windows that see it are multiplied on vectors.
TEST_F(Bf16x6, SeesWindows) {
  for (const Geometry& g : kGeometries) {
    const ConvWindows& w = g.windows;
    const int64_t k = w.window_height * w.window_width * w.channels;
    Problem problem({g.images * w.out_height * w.out_width, g.columns, k});
    std::vector<float> images =
        uniform(static_cast<uint64_t>(g.images * w.height * w.width * w.pixel), -2, 2, 9);
    images[static_cast<size_t>(w.width + 1) * static_cast<size_t>(w.pixel)] = kInfinity;
    for (int64_t row = 0; row < problem.size.m; ++row) {
      const int64_t y = row / w.out_width % w.out_height, x = row % w.out_width;
      const float* image = &images[static_cast<size_t>(row / w.out_width / w.out_height * w.height *
                                                       w.width * w.pixel)];
      float* to = problem.left(row);
      walk_window(w, y * w.stride_y - w.pad_top, x * w.stride_x - w.pad_left,
                  [&](int64_t pixel, int64_t n) {
                    for (int64_t i = 0; i < n; ++i, to += w.channels)
                      if (pixel == kOutside)
                        std::fill(to, to + w.channels, 0.0F);
                      else
                        std::copy_n(image + (pixel + i) * w.pixel, w.channels, to);
                  });
    }
    const auto want = problem.run<float>(ElementType::kF32);
    problem.args.a = images.data();
    problem.args.has_windows = true;
    problem.args.windows = w;
    const auto got = problem.run<float>(ElementType::kF32);
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isfinite(want[i]))
        ASSERT_EQ(got[i], want[i]) << i;
      else
        ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << i;
    }
  }
}

TEST_F(Bf16x6, DoesNotDependOnHowItIsCut) {
  Problem problem({300, 400, 1100});
  const auto want = problem.run<float>(ElementType::kF32);
  auto backwards = [](void*, uint64_t n, uint64_t, Parallel::Body body, void* arg) {
    while (n-- > 0)
      body(arg, n, n + 1);
  };
  EXPECT_EQ(problem.run<float>(ElementType::kF32, {backwards, nullptr}), want);
  Problem one({1, 400, 1100});
  std::memcpy(one.left(0), problem.left(0), 1100 * sizeof(float));
  const auto row = one.run<float>(ElementType::kF32);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), want.begin()));
}

}  // namespace
}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
// Products on AMX tiles against loops in f64: sizes around blocks of 32 rows, panels of 32 columns
// and steps of 64 bytes, rows multiplied in pieces, every kind of epilogue, memory that ends where
// the operands do.

#include "kernels/tile_product.h"

#include <functional>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "tiles.h"

namespace tenon::onednn::kernels {
namespace {

using TileProduct = OnTiles;

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},     {15, 33, 64},   {16, 32, 128},
                           {17, 31, 63},  {32, 64, 65},   {33, 70, 100},
                           {48, 32, 768}, {65, 96, 1536}, {70, 600, 1024}};

// Operands of one product, and what their sums are.
struct Problem {
  Size size;
  ElementType type;
  Guarded a;
  std::vector<double> left, right;  // [m, k], [k, n]
  std::vector<char> packed;
  std::vector<int32_t> shifts;
  std::vector<float> scales, bias;
  TileProductArgs args;

  Problem(const Size& of, ElementType a_type)
      : size(of),
        type(a_type),
        a(static_cast<size_t>(of.m * of.k * element_bytes(a_type))),
        left(static_cast<size_t>(of.m * of.k)),
        right(static_cast<size_t>(of.k * of.n)) {
    std::mt19937 random(7);
    const bool is_bf16 = type == ElementType::kBf16;
    auto real = [&] { return from_bf16(to_bf16(static_cast<float>(random() % 512) / 64 - 4)); };
    for (size_t i = 0; i < left.size(); ++i) {
      const auto byte = static_cast<uint8_t>(random());
      const float value = is_bf16 ? real() : 0.0F;
      const uint16_t word = to_bf16(value);
      left[i] = is_bf16 ? value : (type == ElementType::kU8 ? byte : static_cast<int8_t>(byte));
      if (is_bf16)
        std::memcpy(a.data() + 2 * i, &word, 2);
      else
        a.data()[i] = static_cast<char>(byte);
    }
    std::vector<uint16_t> words(right.size());
    std::vector<int8_t> quantized(right.size());
    for (size_t i = 0; i < right.size(); ++i) {
      quantized[i] = static_cast<int8_t>(random());
      const float value = real();
      words[i] = to_bf16(value);
      right[i] = is_bf16 ? value : quantized[i];
    }
    const ElementType b_type = is_bf16 ? type : ElementType::kS8;
    packed.resize(static_cast<size_t>(packed_tile_bytes(b_type, of.k, of.n)));
    const void* b = is_bf16 ? static_cast<const void*>(words.data()) : quantized.data();
    pack_tiles(b_type, b, of.n, 1, of.k, of.n, packed.data());
    const auto padded = static_cast<uint64_t>(tile_columns(of.n));
    scales = uniform(padded, 0.5e-3F, 1e-3F, 3);
    bias = uniform(padded, -2, 2, 4);
    for (uint64_t i = 0; i < padded; ++i)
      shifts.push_back(static_cast<int32_t>(random() % 1000) - 500);
    args.type = type;
    args.a = a.data();
    args.a_stride = of.k * element_bytes(type);
    args.b = packed.data();
    args.m = of.m;
    args.n = of.n;
    args.k = of.k;
    args.shifts = shifts.data();
    args.epilogue.scales = scales.data();
    args.epilogue.bias = bias.data();
    args.epilogue.dst_stride = of.n;
  }

  double sum(int64_t row, int64_t column) const {
    double s = type == ElementType::kBf16 ? 0 : shifts[static_cast<size_t>(column)];
    for (int64_t i = 0; i < size.k; ++i)
      s += left[static_cast<size_t>(row * size.k + i)] *
           right[static_cast<size_t>(i * size.n + column)];
    return s;
  }
  double real(int64_t row, int64_t column) const {
    const auto at = static_cast<size_t>(column);
    return sum(row, column) * double{scales[at]} + double{bias[at]};
  }

  template <class T>
  std::vector<T> run(ElementType to, Parallel parallel = {}) {
    std::vector<T> dst(static_cast<size_t>(size.m * size.n) + 1, T{77});
    args.epilogue.dst.data = dst.data();
    args.epilogue.dst.type = to;
    tile_product({nullptr, parallel}, args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }
  // want(y, i): what the epilogue makes of element i.
  template <class T>
  void expect_near(const std::vector<T>& got,
                   const std::function<double(double, size_t)>& want,
                   double absolute,
                   double relative = 0) const {
    for (size_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double y = want(real(at / size.n, at % size.n), i);
      ASSERT_NEAR(static_cast<double>(got[i]), y, absolute + relative * std::fabs(y))
          << "at " << i << " of " << size.m << " x " << size.n << ", k " << size.k;
    }
  }
};

TEST_F(TileProduct, GivesTheExactSums) {
  for (const Size& size : kSizes) {
    for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
      Problem problem(size, type);
      const auto got = problem.run<int32_t>(ElementType::kI32);
      for (size_t i = 0; i < got.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        ASSERT_EQ(got[i], problem.sum(at / size.n, at % size.n)) << "at " << i;
      }
    }
  }
}

TEST_F(TileProduct, ScalesAndRounds) {
  for (const Size& size : kSizes) {
    for (ElementType type : {ElementType::kU8, ElementType::kS8, ElementType::kBf16}) {
      Problem problem(size, type);
      auto as_is = [](double y, size_t) { return y; };
      problem.expect_near(problem.run<float>(ElementType::kF32), as_is, 1e-4, 1e-5);
      std::vector<float> real;
      for (uint16_t word : problem.run<uint16_t>(ElementType::kBf16))
        real.push_back(from_bf16(word));
      problem.expect_near(real, as_is, 1e-4, 0.004);
      problem.args.epilogue.dst.quant = {1, 40};
      problem.expect_near(
          problem.run<uint8_t>(ElementType::kU8),
          [](double y, size_t) { return std::clamp(y + 40, 0.0, 255.0); }, 0.501);
      problem.args.epilogue.dst.quant = {1, -9};
      problem.args.epilogue.low = -5.25F;
      problem.args.epilogue.high = 60;
      problem.expect_near(
          problem.run<int8_t>(ElementType::kS8),
          [](double y, size_t) {
            return std::clamp(std::clamp(y, -5.25, 60.0) - 9, -128.0, 127.0);
          },
          0.501);
    }
  }
}

TEST_F(TileProduct, SaturatesWhatNoIntegerHolds) {
  Problem problem({40, 64, 64}, ElementType::kU8);
  std::fill(problem.scales.begin(), problem.scales.end(), 1e30F);
  const auto got = problem.run<uint8_t>(ElementType::kU8);
  problem.expect_near(got, [](double y, size_t) { return y > 0 ? 255.0 : 0.0; }, 0);
}

TEST_F(TileProduct, DoesWhatFollows) {
  using Kind = EpilogueOp::Kind;
  for (const Size& size : {Size{64, 64, 96}, Size{45, 70, 96}}) {
    const auto count = static_cast<uint64_t>(size.m * size.n);
    const std::vector<float> reals = uniform(count, -3, 3, 8);
    const std::vector<uint16_t> halves = random_bf16(count, -3, 3, 9);
    std::vector<uint8_t> bytes(count);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<uint8_t>(i * 37);
    auto gelu = [](double y, size_t) { return y * (0.5 + 0.5 * std::erf(y * std::sqrt(0.5))); };
    struct Case {
      EpilogueOp op;
      std::function<double(double, size_t)> want;
    };
    const Case cases[] = {
        {{.kind = Kind::kShortGelu, .alpha = 2},
         [&](double y, size_t i) { return 2 * gelu(y, i); }},
        {{.kind = Kind::kTableGelu, .alpha = 2},
         [&](double y, size_t i) { return 2 * gelu(y, i); }},
        {{.kind = Kind::kTableGelu, .alpha = 2, .other = {reals.data()}, .column_stride = 1},
         [&](double y, size_t i) {
           return 2 * double{reals[i % static_cast<size_t>(size.n)]} * gelu(y, i);
         }},
        {{.kind = Kind::kGeluErf}, gelu},
        {{.kind = Kind::kAdd,
          .alpha = 0.5F,
          .other = {reals.data()},
          .row_stride = size.n,
          .column_stride = 1},
         [&](double y, size_t i) { return y + 0.5 * double{reals[i]}; }},
        {{.kind = Kind::kAdd,
          .alpha = 1,
          .other = {halves.data(), ElementType::kBf16},
          .row_stride = size.n,
          .column_stride = 1},
         [&](double y, size_t i) { return y + double{from_bf16(halves[i])}; }},
        {{.kind = Kind::kAdd,
          .alpha = 2,
          .other = {bytes.data(), ElementType::kU8, {0.25F, 100}},
          .row_stride = size.n,
          .column_stride = 1},
         [&](double y, size_t i) { return y + 0.5 * (bytes[i] - 100.0); }},
        {{.kind = Kind::kAdd,
          .alpha = 2,
          .other = {bytes.data(), ElementType::kS8, {0.25F, 3}},
          .row_stride = size.n,
          .column_stride = 1},
         [&](double y, size_t i) { return y + 0.5 * (static_cast<int8_t>(bytes[i]) - 3.0); }},
        {{.kind = Kind::kMul, .other = {reals.data()}, .column_stride = 1},
         [&](double y, size_t i) { return y * double{reals[i % static_cast<size_t>(size.n)]}; }},
        {{.kind = Kind::kSwish, .alpha = 1},
         [](double y, size_t) { return y / (1 + std::exp(-y)); }},
    };
    for (const Case& c : cases) {
      for (ElementType type : {ElementType::kS8, ElementType::kBf16}) {
        Problem problem(size, type);
        if (type == ElementType::kBf16)
          for (float& scale : problem.scales)
            scale *= 200;
        problem.args.epilogue.ops = &c.op;
        problem.args.epilogue.n_ops = 1;
        problem.expect_near(problem.run<float>(ElementType::kF32), c.want, 3e-4, 1e-5);
        problem.expect_near(
            problem.run<int8_t>(ElementType::kS8),
            [&](double y, size_t i) { return std::clamp(c.want(y, i), -128.0, 127.0); }, 0.501);
        std::vector<float> rounded;
        for (uint16_t word : problem.run<uint16_t>(ElementType::kBf16))
          rounded.push_back(from_bf16(word));
        problem.expect_near(rounded, c.want, 3e-4, 0.004);
        problem.args.epilogue.low = 0;  // bounds that are the type's own
        problem.expect_near(
            problem.run<uint8_t>(ElementType::kU8),
            [&](double y, size_t i) { return std::clamp(c.want(y, i), 0.0, 255.0); }, 0.501);
      }
    }
  }
}

// In whole blocks and in others, over the table's pieces and behind its ends.
TEST_F(TileProduct, GeluByTableIsWithinItsBound) {
  constexpr int64_t kColumns = 9600;
  const EpilogueOp op{.kind = EpilogueOp::Kind::kTableGelu, .alpha = 1};
  for (const int64_t rows : {32, 31}) {
    Problem problem({rows, kColumns, 1}, ElementType::kS8);
    std::fill(problem.scales.begin(), problem.scales.end(), 0.0F);
    for (size_t i = 0; i < problem.bias.size(); ++i)
      problem.bias[i] = static_cast<float>(i) / 400 - 12;
    problem.args.epilogue.ops = &op;
    problem.args.epilogue.n_ops = 1;
    problem.expect_near(
        problem.run<float>(ElementType::kF32),
        [](double y, size_t) { return y * 0.5 * std::erfc(-y * std::sqrt(0.5)); }, 2.5e-6, 2e-7);
  }
}

// NaN behind the rows of a bf16 operand must not come into the sums.
TEST_F(TileProduct, ReadsNothingBehindItsRows) {
  Problem problem({40, 33, 37}, ElementType::kBf16);
  const auto want = problem.run<float>(ElementType::kF32);
  std::vector<uint16_t> wide(40 * 64, 0x7fc0);
  for (size_t row = 0; row < 40; ++row)
    std::memcpy(&wide[row * 64], problem.a.data() + row * 37 * 2, 37 * 2);
  problem.args.a = wide.data();
  problem.args.a_stride = 64 * 2;
  EXPECT_EQ(problem.run<float>(ElementType::kF32), want);
}

TEST_F(TileProduct, DoesNotDependOnHowItIsCut) {
  Problem problem({300, 200, 1024}, ElementType::kU8);
  const auto want = problem.run<uint8_t>(ElementType::kU8);
  auto backwards = [](void*, uint64_t n, uint64_t, Parallel::Body body, void* arg) {
    while (n-- > 0)
      body(arg, n, n + 1);
  };
  EXPECT_EQ(problem.run<uint8_t>(ElementType::kU8, {backwards, nullptr}), want);
}

// Two threads with other tile configurations at once, and a forked child.
TEST_F(TileProduct, KeepsTheStateOfEachThreadApart) {
  Problem whole({64, 64, 256}, ElementType::kU8);
  Problem part({9, 64, 256}, ElementType::kS8);
  const auto want_whole = whole.run<int32_t>(ElementType::kI32);
  const auto want_part = part.run<int32_t>(ElementType::kI32);
  std::thread other([&] {
    for (int i = 0; i < 200; ++i)
      ASSERT_EQ(part.run<int32_t>(ElementType::kI32), want_part);
  });
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(whole.run<int32_t>(ElementType::kI32), want_whole);
  other.join();
  const pid_t child = fork();
  if (child == 0) _exit(whole.run<int32_t>(ElementType::kI32) == want_whole ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tenon::onednn::kernels

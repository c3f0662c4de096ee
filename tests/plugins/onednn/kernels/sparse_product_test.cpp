// SPDX-License-Identifier: Apache-2.0
// Products with weights that are mostly zeros against sums in f64 and in integers, at each level;
// operands end where memory does.

#include "kernels/sparse_product.h"

#include <cstring>
#include <memory>
#include <thread>

#include "guarded.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

constexpr double kEps = 0x1p-24;
constexpr int64_t kWidths[] = {1, 4, 16};

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},     {1, 16, 128}, {2, 17, 33},   {16, 5, 200},
                           {17, 40, 127}, {33, 33, 65}, {49, 16, 16},  {64, 100, 31},
                           {65, 31, 300}, {7, 1, 130},  {130, 20, 64}, {2060, 18, 21},
                           {0, 4, 4},     {4, 0, 4},    {3, 5, 0}};

// A product with memory of its own.
struct Problem {
  SparseProductArgs args;
  SparseWeights weights;
  std::vector<float> a, b, row_scales, row_bias;  // [m, k], [k, n]
  std::vector<int8_t> quantized;                  // [k, n]
  std::vector<uint8_t> left_bytes;                // [m, k]
  std::unique_ptr<Guarded> left, packed, scratch, dst;

  Problem(const Size& size, double zeros, ElementType type = ElementType::kF32, uint32_t seed = 1) {
    args.m = size.m;
    args.n = args.dst_stride = size.n;
    args.k = args.a.stride = size.k;
    args.a.src.type = type;
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> chance(0, 1);
    a = uniform(static_cast<size_t>(size.m * size.k), -2, 2, seed + 1);
    b = uniform(static_cast<size_t>(size.k * size.n), -1, 1, seed + 2);
    quantized.resize(b.size());
    left_bytes.resize(a.size());
    for (uint8_t& byte : left_bytes)
      byte = static_cast<uint8_t>(random());
    for (size_t i = 0; i < b.size(); ++i) {
      quantized[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
      if (chance(random) < zeros) b[i] = 0, quantized[i] = 0;
    }
    const auto padded = static_cast<size_t>(sparse_columns(size.n));
    row_scales.assign(padded, 1);
    row_bias.assign(padded, 0);
    weights = {.data = are_quantized() ? static_cast<const void*>(quantized.data()) : b.data(),
               .are_quantized = are_quantized(),
               .k = size.k,
               .n = size.n,
               .k_stride = size.n,
               .n_stride = 1};
  }

  bool are_quantized() const { return element_bytes(args.a.src.type) == 1; }
  int64_t count() const { return args.m * args.n; }
  double left_at(int64_t m, int64_t k) const {
    const auto at = static_cast<size_t>(m * args.k + k);
    if (args.a.src.type == ElementType::kU8) return left_bytes[at] - args.a.src.quant.zero_point;
    if (args.a.src.type == ElementType::kS8)
      return static_cast<int8_t>(left_bytes[at]) - args.a.src.quant.zero_point;
    return double{a[at]};
  }
  double right_at(int64_t k, int64_t n) const {
    const auto at = static_cast<size_t>(k * args.n + n);
    return are_quantized() ? double{static_cast<double>(quantized[at])} : double{b[at]};
  }
  struct Answer {
    double sum = 0, absolute = 0;
  };
  Answer answer(int64_t m, int64_t n) const {
    Answer made;
    for (int64_t k = 0; k < args.k; ++k) {
      const double product = left_at(m, k) * right_at(k, n);
      made.sum += product;
      made.absolute += std::fabs(product);
    }
    return made;
  }

  void place_left() {
    const auto n = static_cast<int64_t>(a.size());
    const ElementType type = args.a.src.type;
    left = std::make_unique<Guarded>(n * element_bytes(type));
    if (type == ElementType::kF32) std::copy(a.begin(), a.end(), left->as<float>());
    if (are_quantized()) std::copy(left_bytes.begin(), left_bytes.end(), left->as<uint8_t>());
    if (type != ElementType::kBf16) return;
    for (size_t i = 0; i < a.size(); ++i) {  // cut off, so that the oracle sees the same
      uint32_t bits = 0;
      std::memcpy(&bits, &a[i], 4);
      bits &= 0xffff0000U;
      std::memcpy(&a[i], &bits, 4);
      left->as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
  std::vector<float> run(const Context& context, int64_t width) {
    place_left();
    const int64_t n_blocks = count_sparse_blocks(weights, width);
    packed =
        std::make_unique<Guarded>((packed_sparse_bytes(weights, width, n_blocks) + 63) / 64 * 64);
    // The numbers of k end where memory does: no vector may be read behind them.
    pack_sparse(weights, width, n_blocks, packed->data());
    args.b = unpacked_sparse(weights, width, n_blocks, packed->data());
    scratch = std::make_unique<Guarded>(sparse_scratch_bytes(args.m, args.k, are_quantized()));
    dst = std::make_unique<Guarded>(count() * 4);
    args.a.src.data = left->data();
    args.scratch = scratch->data();
    args.dst.data = dst->data();
    args.scales = row_scales.data();
    args.bias = row_bias.data();
    sparse_product(context, args);
    return {dst->as<float>(), dst->as<float>() + count()};
  }
};

void expect_close(const Problem& problem, const std::vector<float>& got, int64_t width) {
  for (int64_t i = 0; i < problem.count(); ++i) {
    const auto want = problem.answer(i / problem.args.n, i % problem.args.n);
    const double bound = problem.are_quantized()
                             ? 0
                             : (static_cast<double>(problem.args.k) + 2) * kEps * want.absolute;
    ASSERT_NEAR(got[static_cast<size_t>(i)], want.sum, bound)
        << "at " << i << " of " << problem.args.m << " x " << problem.args.n << ", k "
        << problem.args.k << ", width " << width;
  }
}

class SparseProduct : public EachLevel {};

TEST_P(SparseProduct, RealsKeepTheBound) {
  for (const Size& size : kSizes)
    for (double zeros : {0.0, 0.5, 0.9, 1.0})
      for (int64_t width : kWidths) {
        Problem problem(size, zeros);
        expect_close(problem, problem.run(context_, width), width);
      }
}

TEST_P(SparseProduct, TakesShortReals) {
  for (const Size& size : kSizes) {
    Problem problem(size, 0.8, ElementType::kBf16);
    expect_close(problem, problem.run(context_, 1), 1);
  }
}

TEST_P(SparseProduct, IntegersAreExact) {
  if (!multiplies_sparse_int8(context_)) GTEST_SKIP() << "no VNNI at this level";
  for (const Size& size : kSizes)
    for (ElementType type : {ElementType::kU8, ElementType::kS8})
      for (int64_t width : kWidths) {
        Problem problem(size, 0.8, type);
        problem.args.a.src.quant.zero_point = type == ElementType::kU8 ? 131 : -5;
        expect_close(problem, problem.run(context_, width), width);
      }
}

TEST_P(SparseProduct, StoresOnlyWhatIsNotZero) {
  Problem problem({1, 32, 64}, 1.0);
  EXPECT_EQ(count_sparse_blocks(problem.weights, 1), 0);
  problem.b[5 * 32 + 6] = problem.b[5 * 32 + 7] = 1;
  problem.b[63 * 32 + 31] = 1;
  EXPECT_EQ(count_sparse_blocks(problem.weights, 1), 3);
  EXPECT_EQ(count_sparse_blocks(problem.weights, 4), 2);
  EXPECT_EQ(count_sparse_blocks(problem.weights, 16), 2);
  EXPECT_LE(packed_sparse_bytes(problem.weights, 1, 3), 3 * 6 + 33 * 4 + 128);
}

// Weights of a convolution or a transposed matrix lie [n, k].
TEST_P(SparseProduct, TakesTurnedWeights) {
  Problem problem({20, 21, 40}, 0.7);
  const std::vector<float> want = problem.run(context_, 1);
  std::vector<float> transposed(problem.b.size());
  for (size_t k = 0; k < 40; ++k)
    for (size_t n = 0; n < 21; ++n)
      transposed[n * 40 + k] = problem.b[k * 21 + n];
  problem.weights.data = transposed.data();
  problem.weights.k_stride = 1;
  problem.weights.n_stride = 40;
  EXPECT_EQ(problem.run(context_, 1), want);
}

// What a convolution of 1x1 with strides of 2 reads of two images of 5 x 7 pixels.
TEST_P(SparseProduct, ReadsLinesOfImages) {
  Problem all({70, 9, 12}, 0.5), some({24, 9, 12}, 0.5);
  some.b = all.b;
  some.a = all.a;
  some.args.a = {.src = {},
                 .stride = 24,
                 .of_line = 4,
                 .line = 2 * 7 * 12,
                 .of_image = 3,
                 .image = 5 * 7 * 12};
  for (int64_t width : kWidths) {
    const std::vector<float> every = all.run(context_, width), got = some.run(context_, width);
    for (size_t row = 0; row < 24; ++row) {
      const size_t from = row / 12 * 35 + row / 4 % 3 * 14 + row % 4 * 2;
      for (size_t n = 0; n < 9; ++n)
        ASSERT_NEAR(got[row * 9 + n], every[from * 9 + n], 1e-5) << row << " " << n;
    }
  }
}

TEST_P(SparseProduct, DoesWhatFollows) {
  using Kind = EpilogueOp::Kind;
  Problem problem({37, 21, 64}, 0.8);
  problem.row_scales = uniform(32, 0.5F, 2, 8);
  problem.row_bias = uniform(32, -3, 3, 9);
  const std::vector<float> residual = uniform(37 * 21, -1, 1, 10);
  const EpilogueOp ops[] = {{.kind = Kind::kLeakyRelu, .alpha = 0.25F},
                            {.kind = Kind::kAdd,
                             .alpha = 1,
                             .other = {residual.data()},
                             .row_stride = 21,
                             .column_stride = 1}};
  problem.args.ops = ops;
  problem.args.n_ops = 2;
  problem.args.high = 4;
  for (int64_t width : kWidths) {
    const std::vector<float> got = problem.run(context_, width);
    for (int64_t i = 0; i < problem.count(); ++i) {
      const auto at = static_cast<size_t>(i);
      const auto n = static_cast<size_t>(i % 21);
      double y = problem.answer(i / 21, i % 21).sum * double{problem.row_scales[n]} +
                 double{problem.row_bias[n]};
      y = std::min((y > 0 ? y : y / 4) + double{residual[at]}, 4.0);
      ASSERT_NEAR(got[at], y, 1e-4) << "at " << i << ", width " << width;
    }
  }
}

TEST_P(SparseProduct, SpreadsWhatIsNoNumberAlongItsRowAlone) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (int64_t width : kWidths) {
      Problem problem({70, 19, 33}, 0.5);
      problem.a[40 * 33 + 32] = bad;
      const std::vector<float> got = problem.run(context_, width);
      for (int64_t i = 0; i < problem.count(); ++i) {
        const float y = got[static_cast<size_t>(i)];
        const bool is_read = problem.b[static_cast<size_t>(32 * 19 + i % 19)] != 0;
        const bool may_be_bad = i / 19 == 40 && (is_read || width > 1);
        if (!may_be_bad) {
          ASSERT_TRUE(std::isfinite(y)) << "at " << i;
        }
        if (i / 19 == 40 && is_read) {
          ASSERT_FALSE(std::isfinite(y)) << "at " << i;
        }
      }
    }
  }
}

// As many threads as there are, each a piece.
struct Threads {
  uint64_t n;
  static void run(void* self, uint64_t n, uint64_t grain, Parallel::Body body, void* arg) {
    const uint64_t most = std::min(static_cast<Threads*>(self)->n, (n + grain - 1) / grain);
    std::vector<std::thread> running;
    for (uint64_t i = 0; i < most; ++i)
      running.emplace_back([=] { body(arg, n * i / most, n * (i + 1) / most); });
    for (std::thread& each : running)
      each.join();
  }
};

TEST_P(SparseProduct, IsTheSameWithAnyNumberOfThreads) {
  for (const Size& size : {Size{130, 300, 200}, Size{2500, 40, 64}, Size{1, 900, 300}}) {
    for (int64_t width : kWidths) {
      Problem problem(size, 0.8);
      Context alone = context_;
      alone.parallel = {};
      const std::vector<float> want = problem.run(alone, width);
      for (uint64_t n : {2, 3, 7}) {
        Threads threads{n};
        Context many = context_;
        many.parallel = {Threads::run, &threads};
        EXPECT_EQ(problem.run(many, width), want) << n << " threads, width " << width;
      }
    }
  }
}

TENON_EACH_LEVEL(SparseProduct);

}  // namespace
}  // namespace tenon::onednn::kernels

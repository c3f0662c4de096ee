// SPDX-License-Identifier: Apache-2.0
// Products with 4-bit weights against sums in f64, by reals and by quantized values, at each level,
// with and without VNNI; operands end where memory does.

#include "kernels/int4_product.h"

#include <cstring>
#include <memory>

#include "guarded.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

constexpr double kEps = 0x1p-24;

struct Size {
  int64_t m, n, k;
};

// A product with memory of its own. Quantized values lie [k, n] or, transposed, [n, k], as files
// have them.
struct Problem {
  Int4ProductArgs args;
  std::vector<float> a, scales;
  std::vector<uint8_t> quantized, zeros;  // one a byte, [k, n]; [groups, n]
  std::vector<float> row_scales, row_bias;
  std::unique_ptr<Guarded> left, packed, packed_scales, packed_zeros, scratch, dst;

  Problem(const Size& size, int64_t group, bool has_zeros, uint32_t seed = 1) {
    std::mt19937 random(seed);
    args.m = size.m;
    args.n = args.dst_stride = size.n;
    args.k = args.a_stride = size.k;
    args.b.group = group;
    args.b.n_groups = int4_groups(size.k, group);
    a = uniform(static_cast<uint64_t>(size.m * size.k), -2, 2, seed + 1);
    scales = uniform(static_cast<uint64_t>(args.b.n_groups * size.n), 0.01F, 0.1F, seed + 2);
    quantized.resize(static_cast<size_t>(size.k * size.n));
    for (uint8_t& value : quantized)
      value = random() % 16;
    if (has_zeros) zeros.resize(scales.size());
    for (uint8_t& zero : zeros)
      zero = random() % 16;
    const auto padded = static_cast<size_t>(int4_columns(size.n));
    row_scales.assign(padded, 1);
    row_bias.assign(padded, 0);
  }

  int64_t count() const { return args.m * args.n; }
  double zero(int64_t g, int64_t n) const {
    return zeros.empty() ? kInt4Zero : zeros[static_cast<size_t>(g * args.n + n)];
  }
  double weight(int64_t k, int64_t n) const {
    const int64_t g = k / args.b.group;
    return (quantized[static_cast<size_t>(k * args.n + n)] - zero(g, n)) *
           double{scales[static_cast<size_t>(g * args.n + n)]};
  }
  double left_at(int64_t m, int64_t k) const {
    return double{a[static_cast<size_t>(m * args.k + k)]};
  }
  double largest(int64_t m, int64_t g) const {
    double most = 0;
    for (int64_t k = g * args.b.group; k < std::min(args.k, (g + 1) * args.b.group); ++k)
      most = std::max(most, std::fabs(left_at(m, k)));
    return most;
  }

  // What is exact, what is lost at most, and what 8-bit quantized values of the left operand give.
  struct Answer {
    double exact = 0, by_quantized = 0, absolute = 0, rounding = 0;
  };
  Answer answer(int64_t m, int64_t n) const {
    Answer made;
    float step = 0, inverse = 0;
    for (int64_t k = 0; k < args.k; ++k) {
      if (k % args.b.group == 0) {
        const auto most = static_cast<float>(largest(m, k / args.b.group));
        step = most / 127.0F;
        inverse = most == 0 ? 0 : 127.0F / most;
      }
      const double x = left_at(m, k), w = weight(k, n);
      made.exact += x * w;
      made.absolute += std::fabs(x * w);
      made.rounding += double{step} / 2 * std::fabs(w);
      made.by_quantized +=
          double{std::nearbyint(static_cast<float>(x) * inverse)} * double{step} * w;
    }
    return made;
  }
  double tolerance(const Answer& one, bool as_int8) const {
    const auto groups = static_cast<double>(args.b.n_groups);
    if (as_int8) return one.rounding + (groups + 8) * kEps * one.absolute + 1e-30;
    return (static_cast<double>(args.b.group) + groups + 2) * kEps * one.absolute + 1e-30;
  }

  void pack(ElementType scale_type) {
    const int64_t n = args.n, k = args.k, group = args.b.group;
    // Two quantized values a byte, row by row, as ONNX packs a [k, n] tensor.
    std::vector<uint8_t> halves(quantized.size() / 2 + 1, 0);
    for (size_t i = 0; i < quantized.size(); ++i)
      halves[i / 2] = static_cast<uint8_t>(halves[i / 2] | quantized[i] << (i % 2 * 4));
    Guarded source(static_cast<int64_t>((quantized.size() + 1) / 2));
    std::memcpy(source.as<uint8_t>(), halves.data(), (quantized.size() + 1) / 2);
    packed = std::make_unique<Guarded>(int4_packed_bytes(k, n, group));
    pack_int4({source.as<uint8_t>(), n, 1, 0}, k, n, group, packed->as<uint8_t>());
    const int64_t numbers = int4_columns(n) * args.b.n_groups;
    packed_scales = std::make_unique<Guarded>(numbers * element_bytes(scale_type));
    packed_zeros = std::make_unique<Guarded>(numbers);
    for (int64_t g = 0; g < args.b.n_groups; ++g) {
      for (int64_t column = 0; column < int4_columns(n); ++column) {
        const int64_t to =
            (column / kInt4Panel * args.b.n_groups + g) * kInt4Panel + column % kInt4Panel;
        const bool is_there = column < n;
        float& scale = scales[is_there ? static_cast<size_t>(g * n + column) : 0];
        put_scale(scale_type, to, is_there ? &scale : nullptr);
        packed_zeros->as<uint8_t>()[to] =
            is_there && !zeros.empty() ? zeros[static_cast<size_t>(g * n + column)] : 8;
      }
    }
    args.b.quantized = packed->as<uint8_t>();
    args.b.scales = packed_scales->as<void>();
    args.b.scale_type = scale_type;
    args.b.zeros = zeros.empty() ? nullptr : packed_zeros->as<uint8_t>();
  }
  // Scales of fewer bits are made exact first, so that the oracle sees what the kernel does.
  void put_scale(ElementType type, int64_t to, float* scale) {
    uint32_t bits = 0;
    if (scale != nullptr) {
      std::memcpy(&bits, scale, 4);
      if (type == ElementType::kBf16) bits &= 0xffff0000U;
      if (type == ElementType::kF16) bits &= 0xffffe000U;
      std::memcpy(scale, &bits, 4);
    }
    const auto f16 = static_cast<uint16_t>(bits == 0 ? 0 : (bits >> 13) - (112U << 10));
    if (type == ElementType::kF32) std::memcpy(packed_scales->as<char>() + to * 4, &bits, 4);
    if (type == ElementType::kBf16)
      packed_scales->as<uint16_t>()[to] = static_cast<uint16_t>(bits >> 16);
    if (type == ElementType::kF16) packed_scales->as<uint16_t>()[to] = f16;
  }

  std::vector<float> run(const Context& context,
                         bool as_int8,
                         bool with_vnni = true,
                         ElementType scale_type = ElementType::kF32) {
    pack(scale_type);
    const auto a_bytes = static_cast<int64_t>(a.size() * 4);
    left = std::make_unique<Guarded>(a_bytes);
    std::copy(a.begin(), a.end(), left->as<float>());
    const int64_t bytes = int4_scratch_bytes(args.m, args.k, args.b.group, as_int8);
    scratch = std::make_unique<Guarded>((bytes + 63) / 64 * 64);
    dst = std::make_unique<Guarded>(count() * 4);
    args.a.data = left->as<float>();
    args.as_int8 = as_int8;
    args.with_vnni = with_vnni;
    args.scratch = scratch->as<void>();
    args.dst.data = dst->as<float>();
    args.scales = row_scales.data();
    args.bias = row_bias.data();
    int4_product(context, args);
    return {dst->as<float>(), dst->as<float>() + count()};
  }
};

constexpr Size kSizes[] = {{1, 1, 1},    {1, 16, 128},  {2, 17, 33},  {3, 5, 200},  {4, 40, 127},
                           {5, 33, 65},  {6, 16, 16},   {7, 100, 96}, {8, 31, 300}, {9, 47, 130},
                           {21, 20, 64}, {1, 300, 513}, {0, 4, 4},    {4, 0, 4},    {3, 5, 0}};
constexpr int64_t kGroups[] = {16, 32, 64, 128, 48, 256};

class Int4Product : public EachLevel {};

void expect_close(Problem& problem, const std::vector<float>& got, bool as_int8) {
  for (int64_t i = 0; i < problem.count(); ++i) {
    const auto want = problem.answer(i / problem.args.n, i % problem.args.n);
    ASSERT_NEAR(got[static_cast<size_t>(i)], want.exact, problem.tolerance(want, as_int8))
        << "at " << i << " of " << problem.args.m << " x " << problem.args.n << ", k "
        << problem.args.k << ", groups of " << problem.args.b.group;
    if (!as_int8) continue;
    // Halves may round either way: a few steps at most; sums of 16 bits that saturated are far off.
    ASSERT_NEAR(got[static_cast<size_t>(i)], want.by_quantized, want.rounding / 4 + 1e-30)
        << "at " << i;
  }
}

TEST_P(Int4Product, RealsKeepTheBound) {
  for (const Size& size : kSizes)
    for (int64_t group : kGroups)
      for (bool has_zeros : {false, true}) {
        Problem problem(size, group, has_zeros);
        expect_close(problem, problem.run(context_, false), false);
      }
}

TEST_P(Int4Product, QuantizedValuesKeepTheBound) {
  for (const Size& size : kSizes)
    for (int64_t group : kGroups)
      for (bool has_zeros : {false, true}) {
        Problem problem(size, group, has_zeros);
        expect_close(problem, problem.run(context_, true), true);
      }
}

TEST_P(Int4Product, IsTheSameWithoutVnni) {
  for (const Size& size : kSizes) {
    Problem problem(size, 32, true);
    EXPECT_EQ(problem.run(context_, true, true), problem.run(context_, true, false));
  }
}

TEST_P(Int4Product, TakesScalesOfTwoBytes) {
  for (ElementType type : {ElementType::kF16, ElementType::kBf16})
    for (bool as_int8 : {false, true}) {
      Problem problem({3, 21, 100}, 32, true);
      expect_close(problem, problem.run(context_, as_int8, true, type), as_int8);
    }
}

// What saturates where more than eight pairs are added in 16 bits.
TEST_P(Int4Product, TakesTheLargestQuantizedValues) {
  for (float sign : {1.0F, -1.0F}) {
    Problem problem({2, 18, 1024}, 256, true);
    std::fill(problem.a.begin(), problem.a.end(), sign * 127.0F);
    std::fill(problem.quantized.begin(), problem.quantized.end(), uint8_t{15});
    std::fill(problem.zeros.begin(), problem.zeros.end(), uint8_t{0});
    std::fill(problem.scales.begin(), problem.scales.end(), 0.5F);
    for (float y : problem.run(context_, true))
      ASSERT_EQ(y, sign * 127.0F * 15 * 1024 / 2);
  }
}

TEST_P(Int4Product, TakesZerosAndTheTiniest) {
  for (bool as_int8 : {false, true}) {
    Problem problem({2, 5, 96}, 32, false);
    std::fill(problem.a.begin(), problem.a.begin() + 96, 0.0F);  // row 0, all groups
    std::fill(problem.a.begin() + 96, problem.a.begin() + 128, 0x1p-130F);
    const std::vector<float> got = problem.run(context_, as_int8);
    for (int64_t n = 0; n < 5; ++n)
      EXPECT_EQ(got[static_cast<size_t>(n)], 0.0F);
    for (int64_t n = 0; n < 5; ++n) {
      const auto want = problem.answer(1, n);
      EXPECT_NEAR(got[static_cast<size_t>(5 + n)], want.exact, problem.tolerance(want, as_int8));
    }
  }
}

TEST_P(Int4Product, SpreadsWhatIsNoNumberAlongItsRowAlone) {
  const float kInf = std::numeric_limits<float>::infinity();
  for (float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (bool as_int8 : {false, true}) {
      Problem problem({10, 19, 70}, 32, true);
      problem.a[4 * 70 + 69] = bad;
      const std::vector<float> got = problem.run(context_, as_int8);
      for (int64_t i = 0; i < problem.count(); ++i) {
        const auto want = problem.answer(i / 19, i % 19);
        const float y = got[static_cast<size_t>(i)];
        if (i / 19 != 4) {
          ASSERT_NEAR(y, want.exact, problem.tolerance(want, as_int8));
        } else if (as_int8 || std::isnan(want.exact)) {
          ASSERT_TRUE(std::isnan(y)) << "at " << i << ": " << y;
        } else {
          ASSERT_EQ(y, static_cast<float>(want.exact)) << "at " << i;
        }
      }
    }
  }
}

TEST_P(Int4Product, DoesWhatFollows) {
  using Kind = EpilogueOp::Kind;
  Problem problem({11, 37, 64}, 32, false);
  problem.row_scales = uniform(48, 0.5F, 2, 8);
  problem.row_bias = uniform(48, -3, 3, 9);
  const std::vector<float> residual = uniform(11 * 37, -1, 1, 10);
  const EpilogueOp ops[] = {{.kind = Kind::kLeakyRelu, .alpha = 0.25F},
                            {.kind = Kind::kAdd,
                             .alpha = 1,
                             .other = {residual.data()},
                             .row_stride = 37,
                             .column_stride = 1}};
  problem.args.ops = ops;
  problem.args.n_ops = 2;
  problem.args.high = 4;
  const std::vector<float> got = problem.run(context_, false);
  for (int64_t i = 0; i < problem.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto n = static_cast<size_t>(i % 37);
    double y = problem.answer(i / 37, i % 37).exact * double{problem.row_scales[n]} +
               double{problem.row_bias[n]};
    y = std::min((y > 0 ? y : y / 4) + double{residual[at]}, 4.0);
    ASSERT_NEAR(got[at], y, 1e-4) << "at " << i;
  }
}

// A row's result is the same whichever rows stand around it, if these are as many.
TEST_P(Int4Product, RowsStandAlone) {
  for (bool as_int8 : {false, true}) {
    Problem all({8, 20, 100}, 32, false), other({8, 20, 100}, 32, false);
    std::fill(other.a.begin() + 100, other.a.end(), 1e30F);
    const auto got = all.run(context_, as_int8), again = other.run(context_, as_int8);
    for (size_t n = 0; n < 20; ++n)
      EXPECT_EQ(got[n], again[n]);
  }
}

TEST(Int4Packing, PutsEightOfAColumnIntoAWord) {
  std::vector<uint8_t> quantized(16 * 3 / 2);  // [16, 3], (k * 3 + n) % 16
  for (size_t i = 0; i < 48; ++i)
    quantized[i / 2] = static_cast<uint8_t>(quantized[i / 2] | (i % 16) << (i % 2 * 4));
  std::vector<uint8_t> packed(static_cast<size_t>(int4_packed_bytes(16, 3, 16)), 99);
  pack_int4({quantized.data(), 3, 1, 0}, 16, 3, 16, packed.data());
  auto value = [](int64_t k, int64_t n) { return (k * 3 + n) % 16; };
  for (int64_t step = 0; step < 2; ++step)
    for (int64_t n = 0; n < 16; ++n)
      for (int64_t i = 0; i < 4; ++i) {
        const int byte = packed[static_cast<size_t>(step * 64 + n * 4 + i)];
        EXPECT_EQ(byte & 15, n < 3 ? value(step * 8 + i, n) : 8);
        EXPECT_EQ(byte >> 4, n < 3 ? value(step * 8 + 4 + i, n) : 8);
      }
  pack_int4({quantized.data(), 3, 1, 8}, 16, 3, 16, packed.data());
  EXPECT_EQ(packed[0] & 15, value(0, 0) ^ 8);
}

TENON_EACH_LEVEL(Int4Product);

}  // namespace
}  // namespace tenon::onednn::kernels

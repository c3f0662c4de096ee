// SPDX-License-Identifier: Apache-2.0
// Attention on AMX tiles against loops in f64: head sizes, lengths, masks, layouts, result types.

#include "kernels/tile_attention.h"

#include "tiles.h"

namespace tenon::onednn::kernels {
namespace {

using TileAttention = OnTiles;

struct Shape {
  int64_t outer, inner, rows, keys, depth, width;
};
constexpr Shape kShapes[] = {{2, 3, 40, 40, 32, 32},  {1, 2, 1, 5, 1, 1},
                             {1, 1, 33, 129, 33, 80}, {1, 2, 16, 64, 64, 64},
                             {2, 1, 50, 300, 80, 33}, {1, 1, 70, 31, 256, 256}};

// Row-major [outer, inner, rows, columns].
AttentionStrides plain(const Shape& s, int64_t rows, int64_t columns) {
  return {s.inner * rows * columns, rows * columns, columns, 1};
}

struct Problem {
  Shape shape;
  std::vector<uint16_t> q, k, v;
  TileAttentionArgs args;

  explicit Problem(const Shape& s) : shape(s) {
    auto make = [&](int64_t rows, int64_t columns, uint32_t seed) {
      return random_bf16(static_cast<uint64_t>(s.outer * s.inner * rows * columns), -2, 2, seed);
    };
    q = make(s.rows, s.depth, 1);
    k = make(s.keys, s.depth, 2);
    v = make(s.keys, s.width, 3);
    args.outer = s.outer;
    args.inner = s.inner;
    args.rows = s.rows;
    args.keys = s.keys;
    args.depth = s.depth;
    args.width = s.width;
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.q_strides = plain(s, s.rows, s.depth);
    args.k_strides = plain(s, s.keys, s.depth);
    args.v_strides = plain(s, s.keys, s.width);
    args.dst_strides = plain(s, s.rows, s.width);
    args.scale = 1.0F / std::sqrt(static_cast<float>(s.depth));
  }

  std::vector<double> want() const {
    std::vector<double> y;
    for (int64_t o = 0; o < shape.outer; ++o)
      for (int64_t i = 0; i < shape.inner; ++i)
        for (int64_t r = 0; r < shape.rows; ++r)
          append_row(o, i, r, y);
    return y;
  }
  void append_row(int64_t o, int64_t i, int64_t r, std::vector<double>& y) const {
    auto at = [&](const uint16_t* data, const AttentionStrides& s, int64_t row, int64_t column) {
      return double{from_bf16(data[o * s.outer + i * s.inner + row * s.row + column * s.column])};
    };
    std::vector<double> weights;
    double top = -INFINITY, sum = 0;
    for (int64_t n = 0; n < shape.keys; ++n) {
      double score = 0;
      for (int64_t c = 0; c < shape.depth; ++c)
        score += at(args.q, args.q_strides, r, c) * at(args.k, args.k_strides, n, c);
      score *= double{args.scale};
      const AttentionStrides& m = args.mask_strides;
      if (args.mask != nullptr)
        score += double{args.mask[o * m.outer + i * m.inner + r * m.row + n]};
      weights.push_back(score);
      top = std::max(top, score);
    }
    for (double& weight : weights)
      sum += weight = std::exp(weight - top);
    for (int64_t c = 0; c < shape.width; ++c) {
      double result = 0;
      for (int64_t n = 0; n < shape.keys; ++n)
        result += weights[static_cast<size_t>(n)] * at(args.v, args.v_strides, n, c);
      y.push_back(result / sum);
    }
  }

  template <class T>
  std::vector<T> run(ElementType type) {
    std::vector<T> dst(
        static_cast<size_t>(shape.outer * shape.inner * shape.rows * shape.width) + 1, T{77});
    args.dst.data = dst.data();
    args.dst.type = type;
    EXPECT_TRUE(takes_tile_attention(args));
    tile_attention({}, args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }
};

// bf16 weights: 2^-9 of a result of at most 2.
void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 6e-3) << "at " << i;
}

TEST_F(TileAttention, AgreesWithF64) {
  for (const Shape& shape : kShapes) {
    Problem problem(shape);
    expect_near(problem.run<float>(ElementType::kF32), problem.want());
  }
}

// One query and three keys, worked out by hand.
TEST_F(TileAttention, GivesTheKnownExample) {
  Problem problem({1, 1, 1, 3, 2, 2});
  auto words = [](std::initializer_list<float> values) {
    std::vector<uint16_t> made;
    for (float value : values)
      made.push_back(to_bf16(value));
    return made;
  };
  const auto q = words({1, 0}), k = words({0, 0, 2, 0, -1, 0}), v = words({1, 0, 0, 1, 1, 1});
  problem.args.q = q.data();
  problem.args.k = k.data();
  problem.args.v = v.data();
  const auto y = problem.run<float>(ElementType::kF32);
  EXPECT_NEAR(y[0], 0.2663, 1e-3);
  EXPECT_NEAR(y[1], 0.8216, 2e-3);
}

TEST_F(TileAttention, AddsMasksThatBroadcast) {
  for (const Shape& shape : kShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      const int64_t rows = is_of_rows ? shape.rows : 1;
      auto mask = uniform(static_cast<uint64_t>(shape.outer * rows * shape.keys), -3, 3, 5);
      for (size_t i = 0; i < mask.size(); i += 3)
        mask[i] = i % static_cast<size_t>(shape.keys) == 0 ? 0.0F : -INFINITY;
      problem.args.mask = mask.data();
      problem.args.mask_strides = {rows * shape.keys, 0, is_of_rows ? shape.keys : 0, 1};
      expect_near(problem.run<float>(ElementType::kF32), problem.want());
    }
  }
}

TEST_F(TileAttention, GivesNanWhereTheFormulaDoes) {
  Problem problem({1, 1, 20, 20, 32, 32});
  std::vector<float> mask(20 * 20, 0.0F);
  std::fill_n(&mask[3 * 20], 20, -INFINITY);
  problem.args.mask = mask.data();
  problem.args.mask_strides = {0, 0, 20, 1};
  const auto y = problem.run<float>(ElementType::kF32);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(std::isnan(y[i]), i / 32 == 3) << "at " << i;
}

// Heads of [tokens, 3, heads, depth], as one product makes q, k and v; keys that lie column by
// column.
TEST_F(TileAttention, ReadsOperandsWhereTheyLie) {
  const Shape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = 3 * shape.inner * shape.depth;
  const auto joined =
      random_bf16(static_cast<uint64_t>(shape.outer * shape.rows * token), -2, 2, 6);
  const AttentionStrides strides{shape.rows * token, shape.depth, token, 1};
  problem.args.q = joined.data();
  problem.args.k = joined.data() + shape.inner * shape.depth;
  problem.args.v = joined.data() + 2 * shape.inner * shape.depth;
  problem.args.q_strides = problem.args.k_strides = problem.args.v_strides = strides;
  expect_near(problem.run<float>(ElementType::kF32), problem.want());
  problem.args.k = problem.k.data();
  problem.args.k_strides = {shape.inner * shape.keys * shape.depth, shape.keys * shape.depth, 1,
                            shape.keys};
  expect_near(problem.run<float>(ElementType::kF32), problem.want());
}

TEST_F(TileAttention, RoundsToTheTypeOfItsResult) {
  Problem problem({1, 2, 40, 50, 32, 48});
  const std::vector<double> want = problem.want();
  problem.args.dst.quant = {0.01F, 120};
  const auto bytes = problem.run<uint8_t>(ElementType::kU8);
  problem.args.dst.quant = {0.02F, -3};
  const auto codes = problem.run<int8_t>(ElementType::kS8);
  const auto words = problem.run<uint16_t>(ElementType::kBf16);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(bytes[i], std::clamp(want[i] / 0.01 + 120, 0.0, 255.0), 1.1) << "at " << i;
    ASSERT_NEAR(codes[i], std::clamp(want[i] / 0.02 - 3, -128.0, 127.0), 0.81) << "at " << i;
    ASSERT_NEAR(from_bf16(words[i]), want[i], 0.012) << "at " << i;
  }
}

}  // namespace
}  // namespace tenon::onednn::kernels

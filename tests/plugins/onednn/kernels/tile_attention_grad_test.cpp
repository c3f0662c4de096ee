// SPDX-License-Identifier: Apache-2.0
// The gradient of attention on AMX tiles against loops in f64: head sizes, lengths, masks, layouts,
// result types.

#include "kernels/tile_attention_grad.h"

#include "attention_problem.h"

namespace tenon::onednn::kernels {
namespace {

using TileAttentionGrad = OnTiles;

constexpr AttentionShape kShapes[] = {{2, 3, 40, 40, 32, 32},   {1, 2, 1, 5, 1, 1},
                                      {1, 1, 33, 129, 33, 80},  {1, 2, 16, 64, 64, 64},
                                      {2, 1, 50, 300, 80, 33},  {1, 1, 70, 31, 256, 256},
                                      {1, 2, 300, 40, 64, 64}};  // several chunks of rows

struct Sum {
  double value = 0;
  double size = 0;  // of its terms

  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

// Of one pair; row-major.
struct Gradients {
  std::vector<Sum> q, k, v;
};

struct Problem {
  AttentionShape shape;
  std::vector<uint16_t> q, k, v, dy;
  std::vector<float> mask;
  std::vector<float> dq, dk, dv;
  AttentionGradArgs args;

  explicit Problem(const AttentionShape& s) : shape(s) {
    auto make = [&](int64_t rows, int64_t columns, uint32_t seed) {
      return random_bf16(static_cast<uint64_t>(s.outer * s.inner * rows * columns), -2, 2, seed);
    };
    q = make(s.rows, s.depth, 1);
    k = make(s.keys, s.depth, 2);
    v = make(s.keys, s.width, 3);
    dy = make(s.rows, s.width, 4);
    dq.resize(q.size(), 77);
    dk.resize(k.size(), 77);
    dv.resize(v.size(), 77);
    args.outer = s.outer;
    args.inner = s.inner;
    args.rows = s.rows;
    args.keys = s.keys;
    args.depth = s.depth;
    args.width = s.width;
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.dy = dy.data();
    args.q_strides = args.dq.strides = plain(s, s.rows, s.depth);
    args.k_strides = args.dk.strides = plain(s, s.keys, s.depth);
    args.v_strides = args.dv.strides = plain(s, s.keys, s.width);
    args.dy_strides = plain(s, s.rows, s.width);
    args.dq.data = dq.data();
    args.dk.data = dk.data();
    args.dv.data = dv.data();
    args.scale = 1.0F / std::sqrt(static_cast<float>(s.depth));
  }

  // For each outer index, of keys alone or of rows too, [keys][rows]; a third of it -infinity, but
  // never all keys.
  void add_mask(bool is_of_rows) {
    const int64_t rows = is_of_rows ? shape.rows : 1;
    mask = uniform(static_cast<uint64_t>(shape.outer * rows * shape.keys), -3, 3, 5);
    for (size_t i = 0; i < mask.size(); ++i) {
      const size_t key = i / static_cast<size_t>(rows) % static_cast<size_t>(shape.keys);
      if (key != 0 && i % 3 == 0) mask[i] = -INFINITY;
    }
    args.mask = mask.data();
    args.mask_strides = {rows * shape.keys, 0, is_of_rows ? 1 : 0, rows};
  }

  double at(const uint16_t* data,
            const AttentionStrides& s,
            int64_t pair,
            int64_t row,
            int64_t column) const {
    return double{from_bf16(data[pair / shape.inner * s.outer + pair % shape.inner * s.inner +
                                 row * s.row + column * s.column])};
  }

  std::vector<double> weights_of_row(int64_t pair, int64_t r) const {
    std::vector<double> w;
    double top = -INFINITY, sum = 0;
    for (int64_t n = 0; n < shape.keys; ++n) {
      double score = 0;
      for (int64_t c = 0; c < shape.depth; ++c)
        score += at(args.q, args.q_strides, pair, r, c) * at(args.k, args.k_strides, pair, n, c);
      score *= double{args.scale};
      const AttentionStrides& m = args.mask_strides;
      if (args.mask != nullptr)
        score += double{args.mask[pair / shape.inner * m.outer + r * m.row + n * m.column]};
      w.push_back(score);
      top = std::max(top, score);
    }
    for (double& weight : w)
      sum += weight = std::exp(weight - top);
    for (double& weight : w)
      weight /= sum;
    return w;
  }

  Gradients want(int64_t pair) const {
    const AttentionShape& s = shape;
    Gradients made{std::vector<Sum>(size_t(s.rows * s.depth)),
                   std::vector<Sum>(size_t(s.keys * s.depth)),
                   std::vector<Sum>(size_t(s.keys * s.width))};
    for (int64_t r = 0; r < s.rows; ++r) {
      const std::vector<double> w = weights_of_row(pair, r);
      std::vector<double> dw(w.size());
      double dot = 0;
      for (int64_t n = 0; n < s.keys; ++n) {
        for (int64_t c = 0; c < s.width; ++c) {
          const double dy_c = at(args.dy, args.dy_strides, pair, r, c);
          dw[size_t(n)] += dy_c * at(args.v, args.v_strides, pair, n, c);
          made.v[size_t(n * s.width + c)].add(w[size_t(n)] * dy_c);
        }
        dot += w[size_t(n)] * dw[size_t(n)];
      }
      for (int64_t n = 0; n < s.keys; ++n) {
        const double ds = double{args.scale} * w[size_t(n)] * (dw[size_t(n)] - dot);
        for (int64_t c = 0; c < s.depth; ++c) {
          made.q[size_t(r * s.depth + c)].add(ds * at(args.k, args.k_strides, pair, n, c));
          made.k[size_t(n * s.depth + c)].add(ds * at(args.q, args.q_strides, pair, r, c));
        }
      }
    }
    return made;
  }

  void run() const {
    EXPECT_TRUE(takes_tile_attention_grad(args));
    tile_attention_grad({}, args);
  }

  // Within what rounding weights and their gradients to bf16 does to sums of such terms; ds is a
  // difference, whose operands are rounded.
  void expect_results() const {
    for (int64_t pair = 0; pair < shape.outer * shape.inner; ++pair) {
      const Gradients expected = want(pair);
      expect_pair(dq, expected.q, pair, "dq");
      expect_pair(dk, expected.k, pair, "dk");
      expect_pair(dv, expected.v, pair, "dv");
    }
  }
  static void expect_pair(const std::vector<float>& got,
                          const std::vector<Sum>& expected,
                          int64_t pair,
                          const char* what) {
    double largest = 0;
    for (const Sum& sum : expected)
      largest = std::max(largest, sum.size);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[size_t(pair) * expected.size() + i], expected[i].value, 0.005 * largest)
          << what << " at " << i << " of pair " << pair;
  }
};

TEST_F(TileAttentionGrad, AgreesWithF64) {
  for (const AttentionShape& shape : kShapes) {
    Problem problem(shape);
    problem.run();
    problem.expect_results();
  }
}

TEST_F(TileAttentionGrad, AddsMasksThatBroadcast) {
  for (const AttentionShape& shape : kShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      problem.add_mask(is_of_rows);
      problem.run();
      problem.expect_results();
    }
  }
}

TEST_F(TileAttentionGrad, LeavesOutWhatIsNotAskedFor) {
  for (int asked = 0; asked < 3; ++asked) {
    Problem problem({1, 2, 140, 50, 32, 48});
    const Problem all = [&] {
      Problem made = problem;
      made.args.dq.data = made.dq.data();
      made.args.dk.data = made.dk.data();
      made.args.dv.data = made.dv.data();
      made.run();
      return made;
    }();
    if (asked != 0) problem.args.dq.data = nullptr;
    if (asked != 1) problem.args.dk.data = nullptr;
    if (asked != 2) problem.args.dv.data = nullptr;
    problem.run();
    const auto none = [](const std::vector<float>& like) {
      return std::vector<float>(like.size(), 77);
    };
    EXPECT_EQ(problem.dq, asked == 0 ? all.dq : none(all.dq));
    EXPECT_EQ(problem.dk, asked == 1 ? all.dk : none(all.dk));
    EXPECT_EQ(problem.dv, asked == 2 ? all.dv : none(all.dv));
  }
}

TEST_F(TileAttentionGrad, GivesNanWhereTheFormulaDoes) {
  Problem problem({1, 1, 20, 24, 32, 32});
  std::vector<float> mask(20 * 24, 0.0F);  // [keys][rows]
  for (size_t key = 0; key < 24; ++key)
    mask[key * 20 + 3] = -INFINITY;
  problem.args.mask = mask.data();
  problem.args.mask_strides = {0, 0, 1, 20};
  problem.run();
  for (size_t i = 0; i < problem.dq.size(); ++i)
    ASSERT_EQ(std::isnan(problem.dq[i]), i / 32 == 3) << "at " << i;
  for (float x : problem.dv)
    ASSERT_TRUE(std::isnan(x));
}

// Heads of [tokens, heads, depth], keys that lie column by column, results as heads too, in bf16.
TEST_F(TileAttentionGrad, ReadsAndWritesWhereOperandsLie) {
  const AttentionShape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = shape.inner * shape.depth;
  const AttentionStrides heads{shape.rows * token, shape.depth, token, 1};
  problem.args.q_strides = problem.args.v_strides = problem.args.dy_strides = heads;
  problem.args.k_strides = {shape.inner * shape.keys * shape.depth, shape.keys * shape.depth, 1,
                            shape.keys};
  problem.run();
  problem.expect_results();
  std::vector<uint16_t> rounded(problem.dq.size());
  problem.args.dq = {rounded.data(), ElementType::kBf16, heads};
  problem.run();
  for (int64_t pair = 0; pair < 8; ++pair)
    for (int64_t i = 0; i < 37 * 32; ++i) {
      const int64_t at = pair / 4 * heads.outer + pair % 4 * heads.inner + i / 32 * token + i % 32;
      ASSERT_EQ(rounded[size_t(at)], to_bf16(problem.dq[size_t(pair * 37 * 32 + i)]));
    }
}

}  // namespace
}  // namespace tenon::onednn::kernels

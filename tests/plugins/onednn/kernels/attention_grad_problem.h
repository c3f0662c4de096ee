// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of attention by loops in f64, and operands for both of its kernels.

#include "attention_problem.h"
#include "kernels/attention_grad_args.h"

namespace tenon::onednn::kernels {

constexpr AttentionShape kAttentionGradShapes[] = {
    {2, 3, 40, 40, 32, 32}, {1, 2, 1, 5, 1, 1},      {1, 1, 33, 129, 33, 80},
    {1, 2, 16, 64, 64, 64}, {2, 1, 50, 300, 80, 33}, {1, 1, 70, 31, 256, 256},
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

// Args: of the kernel; Element: float, or uint16_t for bf16.
template <class Args, class Element>
struct AttentionGradProblem {
  AttentionShape shape;
  std::vector<Element> q, k, v, dy;
  std::vector<float> mask;
  std::vector<float> dq, dk, dv;
  Args args;

  explicit AttentionGradProblem(const AttentionShape& s) : shape(s) {
    auto make = [&](int64_t rows, int64_t columns, uint32_t seed) {
      return random_elements<Element>(static_cast<uint64_t>(s.outer * s.inner * rows * columns),
                                      seed);
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

  // For each outer index, of keys alone or of rows too; a third of it -infinity, but never all
  // keys. is_by_keys: [keys][rows], else [rows][keys].
  void add_mask(bool is_of_rows, bool is_by_keys) {
    const int64_t rows = is_of_rows ? shape.rows : 1;
    args.mask_strides = {rows * shape.keys, 0, is_of_rows ? 1 : 0, rows};
    if (!is_by_keys) args.mask_strides = {rows * shape.keys, 0, is_of_rows ? shape.keys : 0, 1};
    mask = uniform(static_cast<uint64_t>(shape.outer * rows * shape.keys), -3, 3, 5);
    for (size_t i = 0; i < mask.size(); i += 3) {
      const size_t keys = static_cast<size_t>(shape.keys);
      const size_t key = is_by_keys ? i / static_cast<size_t>(rows) % keys : i % keys;
      if (key != 0) mask[i] = -INFINITY;
    }
    args.mask = mask.data();
  }

  double at(const Element* data,
            const AttentionStrides& s,
            int64_t pair,
            int64_t row,
            int64_t column) const {
    return value_of(data[pair / shape.inner * s.outer + pair % shape.inner * s.inner + row * s.row +
                         column * s.column]);
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

  // tolerance: of the largest sum of the terms' magnitudes.
  void expect_results(double tolerance) const {
    for (int64_t pair = 0; pair < shape.outer * shape.inner; ++pair) {
      const Gradients expected = want(pair);
      expect_pair(dq, pair, expected.q, tolerance, "dq");
      expect_pair(dk, pair, expected.k, tolerance, "dk");
      expect_pair(dv, pair, expected.v, tolerance, "dv");
    }
  }
  static void expect_pair(const std::vector<float>& got,
                          int64_t pair,
                          const std::vector<Sum>& expected,
                          double tolerance,
                          const char* what) {
    double largest = 0;
    for (const Sum& sum : expected)
      largest = std::max(largest, sum.size);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[size_t(pair) * expected.size() + i], expected[i].value, tolerance * largest)
          << what << " at " << i << " of pair " << pair;
  }
};

}  // namespace tenon::onednn::kernels

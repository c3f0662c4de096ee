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

template <class Args, class Element>
struct AttentionGradProblem : AttentionOperands<Args, Element> {
  using Operands = AttentionOperands<Args, Element>;
  using Operands::args, Operands::shape, Operands::at, Operands::weights_of_row;
  std::vector<Element> dy;
  std::vector<float> dq, dk, dv;

  explicit AttentionGradProblem(const AttentionShape& s) : Operands(s) {
    dy = this->elements(s.rows, s.width, 4);
    dq.resize(this->q.size(), 77);
    dk.resize(this->k.size(), 77);
    dv.resize(this->v.size(), 77);
    args.dy = dy.data();
    args.dy_strides = plain(s, s.rows, s.width);
    args.dq.strides = args.q_strides;
    args.dk.strides = args.k_strides;
    args.dv.strides = args.v_strides;
    args.dq.data = dq.data();
    args.dk.data = dk.data();
    args.dv.data = dv.data();
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

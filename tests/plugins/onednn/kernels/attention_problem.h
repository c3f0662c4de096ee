// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention by loops in f64, and operands for both of its kernels.

#include <type_traits>

#include "kernels/attention_args.h"
#include "tiles.h"

namespace tenon::onednn::kernels {

struct AttentionShape {
  int64_t outer, inner, rows, keys, depth, width;
};
constexpr AttentionShape kAttentionShapes[] = {{2, 3, 40, 40, 32, 32},  {1, 2, 1, 5, 1, 1},
                                               {1, 1, 33, 129, 33, 80}, {1, 2, 16, 64, 64, 64},
                                               {2, 1, 50, 300, 80, 33}, {1, 1, 70, 31, 256, 256}};

// Row-major [outer, inner, rows, columns].
inline AttentionStrides plain(const AttentionShape& s, int64_t rows, int64_t columns) {
  return {s.inner * rows * columns, rows * columns, columns, 1};
}

inline double value_of(float element) {
  return double{element};
}
inline double value_of(uint16_t bf16) {
  return double{from_bf16(bf16)};
}
template <class Element>
std::vector<Element> random_elements(uint64_t n, uint32_t seed) {
  if constexpr (std::is_same_v<Element, float>) {
    return uniform(n, -2, 2, seed);
  } else {
    return random_bf16(n, -2, 2, seed);
  }
}

// What the kernels and their gradients read. Args: of the kernel; Element: float, or uint16_t for
// bf16.
template <class Args, class Element>
struct AttentionOperands {
  AttentionShape shape;
  std::vector<Element> q, k, v;
  std::vector<float> mask;
  Args args;

  explicit AttentionOperands(const AttentionShape& s) : shape(s) {
    q = elements(s.rows, s.depth, 1);
    k = elements(s.keys, s.depth, 2);
    v = elements(s.keys, s.width, 3);
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
    args.scale = 1.0F / std::sqrt(static_cast<float>(s.depth));
  }

  std::vector<Element> elements(int64_t rows, int64_t columns, uint32_t seed) const {
    return random_elements<Element>(
        static_cast<uint64_t>(shape.outer * shape.inner * rows * columns), seed);
  }

  // For each outer index, of keys alone or of rows too; a third of it -infinity, but never all
  // keys. is_by_keys: [keys][rows], else [rows][keys].
  void add_mask(bool is_of_rows, bool is_by_keys = false) {
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

  // pair: a batch and a head.
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
        score += double{args.mask[pair / shape.inner * m.outer + pair % shape.inner * m.inner +
                                  r * m.row + n * m.column]};
      w.push_back(score);
      top = std::max(top, score);
    }
    for (double& weight : w)
      sum += weight = std::exp(weight - top);
    for (double& weight : w)
      weight /= sum;
    return w;
  }
};

template <class Args, class Element>
struct AttentionProblem : AttentionOperands<Args, Element> {
  using Operands = AttentionOperands<Args, Element>;
  using Operands::args, Operands::at, Operands::shape, Operands::weights_of_row;

  explicit AttentionProblem(const AttentionShape& s) : Operands(s) {
    args.dst_strides = plain(s, s.rows, s.width);
  }

  std::vector<double> want() const {
    std::vector<double> y;
    for (int64_t pair = 0; pair < shape.outer * shape.inner; ++pair) {
      for (int64_t r = 0; r < shape.rows; ++r) {
        const std::vector<double> weights = weights_of_row(pair, r);
        for (int64_t c = 0; c < shape.width; ++c) {
          double result = 0;
          for (int64_t n = 0; n < shape.keys; ++n)
            result += weights[static_cast<size_t>(n)] * at(args.v, args.v_strides, pair, n, c);
          y.push_back(result);
        }
      }
    }
    return y;
  }

  // compute: the kernel.
  template <class T, class F>
  std::vector<T> run(ElementType type, const F& compute) {
    std::vector<T> dst(
        static_cast<size_t>(shape.outer * shape.inner * shape.rows * shape.width) + 1, T{77});
    args.dst.data = dst.data();
    args.dst.type = type;
    compute(args);
    EXPECT_EQ(dst.back(), T{77});
    dst.pop_back();
    return dst;
  }
};

inline void expect_near(const std::vector<float>& got,
                        const std::vector<double>& want,
                        double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

}  // namespace tenon::onednn::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of random numbers, with or without a rank planted in them.

#include <random>

#include "algorithms/kernel.hpp"

namespace tenon::decomposer::test {

inline Matrix random_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Matrix out(rows, cols);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data()[i] = normal(engine);
  return out;
}

// A product of two random factors with noise of this deviation.
inline Matrix planted_matrix(
    int64_t rows, int64_t cols, int64_t rank, double noise, uint64_t seed) {
  Matrix signal = random_matrix(rows, rank, seed) * random_matrix(rank, cols, seed + 1);
  return signal + noise * random_matrix(rows, cols, seed + 2);
}

inline Kernel random_kernel(int64_t n_out, int64_t n_in, int64_t window, uint64_t seed) {
  Matrix m = random_matrix(n_out, n_in * window, seed);
  return {n_out, n_in, window, {m.data(), m.data() + m.size()}};
}

// core x_out U x_in V with random factors.
inline Kernel planted_kernel(const Kernel& core, int64_t n_out, int64_t n_in, uint64_t seed) {
  Matrix u = random_matrix(n_out, core.n_out, seed), v = random_matrix(n_in, core.n_in, seed + 1);
  Kernel out{n_out, n_in, core.window, {}};
  out.numbers.assign(static_cast<size_t>(n_out * n_in * core.window), 0);
  for (int64_t o = 0; o < n_out; ++o) {
    Eigen::Map<Matrix> slice(out.numbers.data() + o * n_in * core.window, n_in, core.window);
    for (int64_t a = 0; a < core.n_out; ++a)
      slice += u(o, a) * (v * core.of_out(a));
  }
  return out;
}

}  // namespace tenon::decomposer::test

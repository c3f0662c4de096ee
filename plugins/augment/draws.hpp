// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of one sample: a function of the batch's seed and the sample's position in the
// batch, whoever asks for them and in what order batches are made.

#include <array>
#include <cstdint>
#include <span>

namespace tenon::augment {

// Seeds that differ for another number, however close both are (splitmix64).
uint64_t mixed(uint64_t seed, uint64_t number);

class Draws {
 public:
  Draws(uint64_t seed, uint64_t position) : seed_(seed), place_(position) {}

  double uniform();                         // in [0, 1)
  double between(double low, double high);  // uniform there
  int64_t below(int64_t n);                 // 0 to n - 1
  bool chance(double p) { return uniform() < p; }
  double beta(double alpha);          // Beta(alpha, alpha)
  void normal(std::span<float> out);  // standard normal numbers

 private:
  double log_gamma(double shape);
  uint64_t seed_, place_, used_ = 0, normals_ = 0;
  std::array<double, 8> ready_{};
};

}  // namespace tenon::augment

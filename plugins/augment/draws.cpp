// SPDX-License-Identifier: Apache-2.0
#include "draws.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tenon/sdk/services.hpp"
#include "tenon/sdk/splitmix.hpp"

namespace tenon::augment {
namespace {

// Streams of one sample: uniform and normal numbers must not be made of the same bits.
uint64_t uniforms_of(uint64_t position) {
  return 2 * position;
}
uint64_t normals_of(uint64_t position) {
  return 2 * position + 1;
}

}  // namespace

uint64_t mixed(uint64_t seed, uint64_t number) {
  return splitmix64(seed + number * kSplitmixStep);
}

double Draws::uniform() {
  size_t at = used_ % ready_.size();
  if (at == 0)
    services.random->uniform(seed_, uniforms_of(place_), used_, ready_.data(), ready_.size());
  ++used_;
  return ready_[at];
}

double Draws::between(double low, double high) {
  return low + (high - low) * uniform();
}

int64_t Draws::below(int64_t n) {
  return std::min(static_cast<int64_t>(uniform() * static_cast<double>(n)), n - 1);
}

void Draws::normal(std::span<float> out) {
  std::vector<double> wide(out.size());
  services.random->normal(seed_, normals_of(place_), normals_, wide.data(), wide.size());
  normals_ += wide.size();
  std::transform(wide.begin(), wide.end(), out.begin(),
                 [](double x) { return static_cast<float>(x); });
}

// Marsaglia and Tsang 2000; a shape below 1 by their section 6. The logarithm of the number: that
// of a small shape is often below what a double holds.
double Draws::log_gamma(double shape) {
  if (shape < 1) {
    constexpr double kLeast = 1e-300;  // so that the quotient stays finite
    const double at = log_gamma(shape + 1);
    return at + std::log(1 - uniform()) / std::max(shape, kLeast);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    float x = 0;
    normal({&x, 1});
    double v = std::pow(1 + c * static_cast<double>(x), 3);
    if (v <= 0) continue;
    if (std::log(1 - uniform()) <
        0.5 * static_cast<double>(x) * static_cast<double>(x) + d - d * v + d * std::log(v))
      return std::log(d * v);
  }
}

// X / (X + Y) of two such numbers.
double Draws::beta(double alpha) {
  const double x = log_gamma(alpha), y = log_gamma(alpha);
  return 1 / (1 + std::exp(y - x));
}

}  // namespace tenon::augment

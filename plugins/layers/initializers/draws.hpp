// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of one parameter, and what the variance-keeping initializers share.

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/sdk/role/initializer.hpp"

namespace tenon::layers {

// Draws all numbers of a parameter in runs, so that a large one needs no copy in doubles.
template <class Draw, class Change>
void draw_all(const tn_initial& of, std::span<float> out, Draw draw, Change change) {
  std::array<double, 1024> run;
  for (size_t at = 0; at < out.size(); at += run.size()) {
    size_t n = std::min(run.size(), out.size() - at);
    draw(of.seed, of.stream, at, run.data(), n);
    for (size_t i = 0; i < n; ++i)
      out[at + i] = static_cast<float>(change(run[i]));
  }
}

inline void draw_normal(const tn_initial& of, std::span<float> out, double mean, double deviation) {
  draw_all(of, out, services.random->normal, [=](double x) { return mean + deviation * x; });
}
inline void draw_uniform(const tn_initial& of, std::span<float> out, double low, double high) {
  draw_all(of, out, services.random->uniform, [=](double x) { return low + (high - low) * x; });
}

// An initializer that draws from a distribution with two parameters.
template <auto kDraw>
class Drawn {
 public:
  Drawn(double first, double second) : first_(first), second_(second) {}
  Status fill(const tn_initial& of, std::span<float> out) const {
    kDraw(of, out, first_, second_);
    return {};
  }

 private:
  double first_, second_;
};

// Numbers of mean 0 and this deviation, of a distribution that an option names.
inline void draw_spread(const tn_initial& of, std::span<float> out, bool normal, double deviation) {
  double bound = deviation * std::sqrt(3.0);  // a uniform one has the variance bound^2 / 3
  normal ? draw_normal(of, out, 0, deviation) : draw_uniform(of, out, -bound, bound);
}

inline double at_least_one(uint64_t fan) {
  return std::max(1.0, static_cast<double>(fan));
}

}  // namespace tenon::layers

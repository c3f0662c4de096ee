// SPDX-License-Identifier: Apache-2.0
#include "adaround.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::quantizer {
namespace {

// Of the stretched sigmoid, so that h reaches its ends (equation 23).
constexpr float kLow = -0.1F, kHigh = 1.1F;
constexpr float kFirstPower = 20, kLastPower = 2;  // of the term that pushes to the ends

struct Entries {            // [rows, columns] each
  std::vector<float> low;   // quantized, rounded down
  std::vector<float> up;    // the share of a step that the number is above it
  std::vector<float> step;  // size of a step, over the mean one: errors of rows are alike
  std::vector<float> v, first, second;  // what is learned, and Adam's moments
};

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

float stretched(float v) {
  return sigmoid(v) * (kHigh - kLow) + kLow;
}

Entries entries_of(const WeightGrid& grid) {
  const size_t n = grid.weight.size();
  Entries out;
  for (std::vector<float>* one : {&out.low, &out.up, &out.step, &out.v, &out.first, &out.second})
    one->assign(n, 0);
  for (int64_t r = 0; r < grid.rows; ++r) {
    double mean = 0;
    for (int64_t c = 0; c < grid.columns; ++c)
      mean +=
          static_cast<double>(grid.scale[grid.scale_at(r, c)]) / static_cast<double>(grid.columns);
    for (int64_t c = 0; c < grid.columns; ++c) {
      auto at = static_cast<size_t>(r * grid.columns + c);
      const size_t scale = grid.scale_at(r, c);
      float exact =
          std::clamp(grid.weight[at] / grid.scale[scale] + grid.zero[scale], grid.low, grid.high);
      out.low[at] = std::clamp(std::floor(exact), grid.low, grid.high - 1);
      out.up[at] = exact - out.low[at];
      out.step[at] = mean > 0 ? grid.scale[scale] / static_cast<float>(mean) : 0;
      float h = std::clamp(out.up[at], 0.001F, 0.999F);
      out.v[at] = -std::log((kHigh - kLow) / (h - kLow) - 1);
    }
  }
  return out;
}

struct Moment {  // of the course
  float power = 0, pressure = 0, first = 0, second = 0;
};

Moment moment_of(const AdaroundPlan& plan, int64_t step) {
  double done = static_cast<double>(step) / static_cast<double>(plan.steps);
  Moment out;
  if (done >= plan.calm) {
    double part = (done - plan.calm) / std::max(1 - plan.calm, 1e-9);
    out.pressure = static_cast<float>(plan.pressure);
    out.power = kLastPower + (kFirstPower - kLastPower) / 2 *
                                 static_cast<float>(1 + std::cos(std::numbers::pi * part));
  }
  out.first = static_cast<float>(1 - std::pow(0.9, static_cast<double>(step + 1)));
  out.second = static_cast<float>(1 - std::pow(0.999, static_cast<double>(step + 1)));
  return out;
}

// One step of Adam for the entries from `begin` to `end`. gradient: of the error, by the misses.
void learn(Entries* e,
           std::span<const float> gradient,
           const Moment& now,
           float rate,
           size_t begin,
           size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const float s = sigmoid(e->v[i]), raw = s * (kHigh - kLow) + kLow;
    float slope = 0;
    if (raw > 0 && raw < 1) {
      slope = 2 * e->step[i] * gradient[i];
      const float off = 2 * raw - 1;  // the term is 1 - |off|^power
      if (now.pressure > 0)
        slope -= now.pressure * 2 * now.power *
                 std::copysign(std::pow(std::abs(off), now.power - 1), off);
      slope *= (kHigh - kLow) * s * (1 - s);
    }
    e->first[i] += 0.1F * (slope - e->first[i]);
    e->second[i] += 0.001F * (slope * slope - e->second[i]);
    e->v[i] -= rate * (e->first[i] / now.first) / (std::sqrt(e->second[i] / now.second) + 1e-12F);
  }
}

}  // namespace

std::vector<float> adaround(const WeightGrid& grid,
                            double mean_square,
                            const AdaroundPlan& plan,
                            const TimesHessian& times_hessian,
                            const Rows& for_rows) {
  if (!(mean_square > 0) || !std::isfinite(mean_square)) return {};
  Entries entries = entries_of(grid);
  const auto of_one = static_cast<float>(1 / mean_square);
  std::vector<float> miss(grid.weight.size()), gradient(miss.size());
  auto each = [&](const std::function<void(size_t, size_t)>& body) {
    for_rows(grid.rows, [&](int64_t begin, int64_t end) {
      body(static_cast<size_t>(begin * grid.columns), static_cast<size_t>(end * grid.columns));
    });
  };
  for (int64_t step = 0; step < plan.steps; ++step) {
    each([&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        miss[i] = (std::clamp(stretched(entries.v[i]), 0.0F, 1.0F) - entries.up[i]) *
                  entries.step[i] * of_one;
    });
    if (!times_hessian(miss, gradient)) return {};
    const Moment now = moment_of(plan, step);
    each([&](size_t begin, size_t end) {
      learn(&entries, gradient, now, static_cast<float>(plan.rate), begin, end);
    });
  }
  std::vector<float> quantized(entries.low);
  for (size_t i = 0; i < quantized.size(); ++i)
    quantized[i] += stretched(entries.v[i]) >= 0.5F ? 1.0F : 0.0F;
  return quantized;
}

}  // namespace tenon::quantizer

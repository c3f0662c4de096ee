// SPDX-License-Identifier: Apache-2.0
// Normalization by the statistics of a batch, and its gradient, against loops in f64.

#include "kernels/batch_norm.h"

#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

float rounded(float x, ElementType type) {
  if (type == ElementType::kF32) return x;
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Numbers as they lie in memory.
std::vector<char> stored(const std::vector<float>& x, ElementType type) {
  const size_t each = type == ElementType::kF32 ? 4 : 2;
  std::vector<char> out(x.size() * each);
  for (size_t i = 0; i < x.size(); ++i) {
    char bytes[4];
    std::memcpy(bytes, &x[i], 4);
    std::memcpy(out.data() + i * each, bytes + 4 - each, each);
  }
  return out;
}
float number_at(const std::vector<char>& x, size_t i, ElementType type) {
  const size_t each = type == ElementType::kF32 ? 4 : 2;
  char bytes[4] = {};
  std::memcpy(bytes + 4 - each, x.data() + i * each, each);
  float out = 0;
  std::memcpy(&out, bytes, 4);
  return out;
}

struct Problem {
  Problem(BatchNorm of, uint32_t seed) : norm(of) {
    const auto n = static_cast<uint64_t>(norm.rows * norm.channels);
    const auto c = static_cast<uint64_t>(norm.channels);
    x = uniform(n, -2, 3, seed);
    dy = uniform(n, -1, 1, seed + 1);
    // A mean that is far larger than the spread.
    for (uint64_t i = 0; i < n; i += c)
      x[i] += 500;
    for (std::vector<float>* all : {&x, &dy})
      for (float& v : *all)
        v = rounded(v, norm.type);
    scale = uniform(c, 0.5, 2, seed + 2);
    shift = uniform(c, -1, 1, seed + 3);
  }
  double at(const std::vector<float>& of, int64_t row, int64_t c) const {
    return of[static_cast<uint64_t>(row * norm.channels + c)];
  }

  BatchNorm norm;
  std::vector<float> x, dy, scale, shift;
};

// Of one channel in f64.
struct Channel {
  Channel(const Problem& p, int64_t c) {
    const auto n = static_cast<double>(p.norm.rows);
    for (int64_t i = 0; i < p.norm.rows; ++i)
      mean += p.at(p.x, i, c) / n;
    for (int64_t i = 0; i < p.norm.rows; ++i)
      variance += std::pow(p.at(p.x, i, c) - mean, 2) / n;
    inverse = 1 / std::sqrt(variance + static_cast<double>(p.norm.epsilon));
    scale = p.scale[static_cast<uint64_t>(c)];
    shift = p.shift[static_cast<uint64_t>(c)];
  }
  double normalized(double x) const { return (x - mean) * inverse; }
  double result(double x) const { return normalized(x) * scale + shift; }
  double mean = 0, variance = 0, inverse = 0, scale = 0, shift = 0;
};

class BatchNorms : public EachLevel {
 protected:
  void check(const Problem& p) {
    const auto c = static_cast<uint64_t>(p.norm.channels);
    std::vector<char> x = stored(p.x, p.norm.type), dy = stored(p.dy, p.norm.type);
    std::vector<char> y(x.size()), dx(x.size());
    std::vector<char> scratch(static_cast<uint64_t>(p.norm.scratch_bytes()));
    std::vector<float> mean(c), variance(c), affine(2 * c), dscale(c), dshift(c);
    batch_norm(context_, p.norm,
               {x.data(), p.scale.data(), p.shift.data(), y.data(), mean.data(), variance.data(),
                affine.data()},
               scratch.data());
    batch_norm_grad(context_, p.norm,
                    {x.data(), dy.data(), p.scale.data(), mean.data(), variance.data(),
                     affine.data(), dx.data(), dscale.data(), dshift.data()},
                    scratch.data());
    for (int64_t k = 0; k < p.norm.channels; ++k) {
      const Channel of(p, k);
      const auto at = static_cast<uint64_t>(k);
      ASSERT_NEAR(mean[at], of.mean, 1e-6 * (1 + std::fabs(of.mean))) << k;
      ASSERT_NEAR(variance[at], of.variance, 2e-4 * of.variance) << k;
      check_channel(p, of, k, y, dx, dscale[at], dshift[at]);
    }
  }

  void check_channel(const Problem& p,
                     const Channel& of,
                     int64_t k,
                     const std::vector<char>& y,
                     const std::vector<char>& dx,
                     float dscale,
                     float dshift) {
    const auto n = static_cast<double>(p.norm.rows);
    const double step = p.norm.type == ElementType::kF32 ? 0 : 1.0 / 256;
    // What rounding of a large mean leaves.
    const double noise = 1e-7 * std::fabs(of.mean) * of.inverse * 4 + 2e-5;
    auto is_on = [&](int64_t i) { return !p.norm.has_relu || of.result(p.at(p.x, i, k)) > 0; };
    double plain = 0, weighted = 0, size = 0;
    for (int64_t i = 0; i < p.norm.rows; ++i) {
      const double d = is_on(i) ? p.at(p.dy, i, k) : 0;
      plain += d;
      weighted += d * of.normalized(p.at(p.x, i, k));
      size += std::fabs(d) * (1 + std::fabs(of.normalized(p.at(p.x, i, k))));
    }
    const double loose = 1e-5 * size + noise * n;
    ASSERT_NEAR(dshift, plain, loose) << k;
    ASSERT_NEAR(dscale, weighted, loose) << k;
    for (int64_t i = 0; i < p.norm.rows; ++i) {
      const double v = of.result(p.at(p.x, i, k));
      const double want = p.norm.has_relu ? std::max(v, 0.0) : v;
      const auto at = static_cast<size_t>(i * p.norm.channels + k);
      const double got = static_cast<double>(number_at(y, at, p.norm.type));
      ASSERT_NEAR(got, want, std::fabs(want) * step + noise * of.scale) << i << " " << k;
      if (std::fabs(v) < 10 * noise && p.norm.has_relu) continue;  // either side of the corner
      const double d = is_on(i) ? p.at(p.dy, i, k) : 0;
      const double slope = of.scale * of.inverse;
      const double of_x = slope * (d - plain / n - of.normalized(p.at(p.x, i, k)) * weighted / n);
      const double got_x = static_cast<double>(number_at(dx, at, p.norm.type));
      ASSERT_NEAR(got_x, of_x, std::fabs(of_x) * step + slope * noise * 40) << i << " " << k;
    }
  }
};

TEST_P(BatchNorms, AgreeWithF64) {
  struct Size {
    int64_t rows, channels;
  };
  constexpr Size kSizes[] = {{1000, 24}, {77, 1},  {4100, 3}, {513, 40}, {300, 64},
                             {33, 200},  {70, 17}, {2, 1000}, {9000, 8}, {1, 5}};
  uint32_t seed = 1;
  for (const Size& size : kSizes)
    for (ElementType type : {ElementType::kF32, ElementType::kBf16})
      for (bool has_relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << size.rows << " x " << size.channels << " " << has_relu);
        check(Problem({size.rows, size.channels, type, 1e-3F, has_relu}, seed += 10));
        if (HasFatalFailure()) return;
      }
}

TEST_P(BatchNorms, DoNotDependOnThePiecesOfThreads) {
  const Problem p({5000, 24, ElementType::kF32, 1e-5F, false}, 3);
  const Context alone = make_context(GetParam());
  std::vector<float> results[2];
  for (const Context* context : std::initializer_list<const Context*>{&context_, &alone}) {
    std::vector<char> scratch(static_cast<uint64_t>(p.norm.scratch_bytes()));
    std::vector<float> mean(24), variance(24);
    batch_statistics(*context, p.norm, p.x.data(), mean.data(), variance.data(), scratch.data());
    std::vector<float>& out = results[context == &alone];
    out = mean;
    out.insert(out.end(), variance.begin(), variance.end());
  }
  EXPECT_EQ(results[0], results[1]);
}

TENON_EACH_LEVEL(BatchNorms);

}  // namespace
}  // namespace tenon::onednn::kernels

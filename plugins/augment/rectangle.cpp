// SPDX-License-Identifier: Apache-2.0
#include "rectangle.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::augment {
namespace {

constexpr int kTries = 10;
constexpr int64_t kMaxSide = 16384;

// To even where it is halfway, as Python's round.
int64_t rounded(double x) {
  return static_cast<int64_t>(std::nearbyint(x));
}

double drawn_ratio(const Shares& shares, Draws& draws) {
  return std::exp(draws.between(std::log(shares.ratio[0]), std::log(shares.ratio[1])));
}

}  // namespace

Result<std::array<double, 2>> range_option(const Options& options,
                                           std::string_view key,
                                           std::array<double, 2> bounds) {
  std::vector<double> given = floats_of(options.get(key));
  if (given.size() == 2 && given[0] <= given[1] && given[0] >= bounds[0] && given[1] <= bounds[1])
    return std::array{given[0], given[1]};
  return invalid(cat("option ", key, ": expected two numbers, the lower first, within ", bounds[0],
                     " to ", bounds[1]));
}

Result<std::array<int64_t, 2>> size_option(const Options& options, const Image& image) {
  if (!options.has("size")) return std::array{image.height, image.width};
  std::vector<int64_t> given = ints_of(options.get("size"));
  const auto is_bad = [](int64_t side) { return side < 1 || side > kMaxSide; };
  if (given.empty() || given.size() > 2 || std::ranges::any_of(given, is_bad))
    return invalid(cat("option size: expected one or two numbers from 1 to ", kMaxSide));
  return std::array{given[0], given.back()};
}

Result<Shares> Shares::from(const Options& options) {
  TN_TRY(scales, range_option(options, "scale", {0, 1}));
  TN_TRY(ratios, range_option(options, "ratio", {1e-3, 1e3}));
  return Shares{scales, ratios};
}

Rectangle drawn_crop(int64_t height, int64_t width, const Shares& shares, Draws& draws) {
  auto area = static_cast<double>(height * width);
  for (int i = 0; i < kTries; ++i) {
    double target = area * draws.between(shares.scale[0], shares.scale[1]);
    double ratio = drawn_ratio(shares, draws);
    int64_t w = rounded(std::sqrt(target * ratio)), h = rounded(std::sqrt(target / ratio));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    int64_t top = draws.below(height - h + 1), left = draws.below(width - w + 1);
    return {top, left, h, w};
  }
  double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t h = height, w = width;
  if (ratio < shares.ratio[0])
    h = std::clamp<int64_t>(rounded(static_cast<double>(w) / shares.ratio[0]), 1, height);
  else if (ratio > shares.ratio[1])
    w = std::clamp<int64_t>(rounded(static_cast<double>(h) * shares.ratio[1]), 1, width);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

Rectangle drawn_hole(int64_t height, int64_t width, const Shares& shares, Draws& draws) {
  auto area = static_cast<double>(height * width);
  for (int i = 0; i < kTries; ++i) {
    double target = area * draws.between(shares.scale[0], shares.scale[1]);
    double ratio = drawn_ratio(shares, draws);
    int64_t h = rounded(std::sqrt(target * ratio)), w = rounded(std::sqrt(target / ratio));
    if (h >= height || w >= width) continue;
    int64_t top = draws.below(height - h + 1), left = draws.below(width - w + 1);
    return {top, left, h, w};
  }
  return {};
}

Rectangle drawn_box(int64_t height, int64_t width, double lambda, Draws& draws) {
  int64_t x = draws.below(width), y = draws.below(height);
  double half = 0.5 * std::sqrt(1 - lambda);
  auto half_width = static_cast<int64_t>(half * static_cast<double>(width));
  auto half_height = static_cast<int64_t>(half * static_cast<double>(height));
  int64_t left = std::max<int64_t>(x - half_width, 0), top = std::max<int64_t>(y - half_height, 0);
  return {top, left, std::min(y + half_height, height) - top,
          std::min(x + half_width, width) - left};
}

}  // namespace tenon::augment

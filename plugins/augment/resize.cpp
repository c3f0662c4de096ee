// SPDX-License-Identifier: Apache-2.0
#include "resize.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::augment {
namespace {

// What each line of the result is made of: weights[begin..] of so many lines from `first` on.
struct Windows {
  std::vector<int64_t> first;
  std::vector<size_t> begin{0};  // and one more: where the last one ends
  std::vector<float> weights;
  int64_t size() const { return static_cast<int64_t>(first.size()); }
};

Windows windows(int64_t n_in, int64_t n_out) {
  double step = static_cast<double>(n_in) / static_cast<double>(n_out);
  double support = std::max(step, 1.0);
  Windows out;
  std::vector<double> weights;
  for (int64_t i = 0; i < n_out; ++i) {
    double centre = step * (static_cast<double>(i) + 0.5);
    int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), n_in);
    weights.clear();
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      double far = std::abs((static_cast<double>(j) - centre + 0.5) / support);
      weights.push_back(std::max(1 - far, 0.0));
      sum += weights.back();
    }
    out.first.push_back(first);
    for (double weight : weights)
      out.weights.push_back(static_cast<float>(weight / sum));
    out.begin.push_back(out.weights.size());
  }
  return out;
}

// Lines of `from` added up by their weights.
void blend(const float* from, int64_t width, const Windows& of, float* __restrict to) {
  for (int64_t i = 0; i < of.size(); ++i, to += width) {
    const auto at = static_cast<size_t>(i);
    const float* line = from + of.first[at] * width;
    std::fill_n(to, width, 0.0f);
    for (size_t j = of.begin[at]; j < of.begin[at + 1]; ++j, line += width) {
      const float weight = of.weights[j];
      for (int64_t x = 0; x < width; ++x)
        to[x] += weight * line[x];
    }
  }
}

void transpose(const float* from, int64_t step, int64_t height, int64_t width, float* to) {
  for (int64_t x = 0; x < width; ++x)
    for (int64_t y = 0; y < height; ++y)
      *to++ = from[y * step + x];
}

}  // namespace

// Columns first, as lines of the transposed part: lines are added up in vectors.
void resized(const Image& in, const Rectangle& part, Image& out) {
  const Windows across = windows(part.width, out.width), down = windows(part.height, out.height);
  std::vector<float> transposed(static_cast<size_t>(part.height * std::max(part.width, out.width))),
      narrow(static_cast<size_t>(part.height * out.width));
  for (int64_t c = 0; c < in.channels; ++c) {
    const float* plane = in.channel(c) + part.top * in.width + part.left;
    transpose(plane, in.width, part.height, part.width, transposed.data());
    blend(transposed.data(), part.height, across, narrow.data());
    transpose(narrow.data(), part.height, out.width, part.height, transposed.data());
    blend(transposed.data(), out.width, down, out.channel(c));
  }
  if (!out.whole) return;
  for (float& x : out.at)
    x = std::clamp(std::nearbyint(x), 0.0f, 255.0f);
}

}  // namespace tenon::augment

// SPDX-License-Identifier: Apache-2.0
#include "resize.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::augment {
namespace {

// What one pixel of the result is made of: weights of so many pixels from `first` on.
struct Window {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Window> windows(int64_t n_in, int64_t n_out) {
  double step = static_cast<double>(n_in) / static_cast<double>(n_out);
  double support = std::max(step, 1.0);
  std::vector<Window> out(static_cast<size_t>(n_out));
  for (int64_t i = 0; i < n_out; ++i) {
    double centre = step * (static_cast<double>(i) + 0.5);
    int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), n_in);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      double far = std::abs((static_cast<double>(j) - centre + 0.5) / support);
      weights.push_back(std::max(1 - far, 0.0));
      sum += weights.back();
    }
    Window& window = out[static_cast<size_t>(i)];
    window.first = first;
    for (double weight : weights)
      window.weights.push_back(static_cast<float>(weight / sum));
  }
  return out;
}

// Rows first..first+count of a plane, added up by their weights.
void blend_rows(const float* plane, int64_t width, const Window& window, float* to) {
  std::fill_n(to, width, 0.0f);
  for (size_t j = 0; j < window.weights.size(); ++j) {
    const float* row = plane + (window.first + static_cast<int64_t>(j)) * width;
    for (int64_t x = 0; x < width; ++x)
      to[x] += window.weights[j] * row[x];
  }
}

}  // namespace

void resized(const Image& in, const Rectangle& part, Image& out) {
  std::vector<Window> across = windows(part.width, out.width),
                      down = windows(part.height, out.height);
  std::vector<float> narrow(static_cast<size_t>(part.height * out.width));
  for (int64_t c = 0; c < in.channels; ++c) {
    for (int64_t y = 0; y < part.height; ++y) {
      const float* row = in.channel(c) + (part.top + y) * in.width + part.left;
      for (int64_t x = 0; x < out.width; ++x) {
        const Window& window = across[static_cast<size_t>(x)];
        float sum = 0;
        for (size_t j = 0; j < window.weights.size(); ++j)
          sum += window.weights[j] * row[window.first + static_cast<int64_t>(j)];
        narrow[static_cast<size_t>(y * out.width + x)] = sum;
      }
    }
    for (int64_t y = 0; y < out.height; ++y)
      blend_rows(narrow.data(), out.width, down[static_cast<size_t>(y)],
                 out.channel(c) + y * out.width);
  }
  if (!out.whole) return;
  for (float& x : out.at)
    x = std::clamp(std::nearbyint(x), 0.0f, 255.0f);
}

}  // namespace tenon::augment

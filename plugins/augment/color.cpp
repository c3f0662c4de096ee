// SPDX-License-Identifier: Apache-2.0
#include "color.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::augment {
namespace {

// Within the bounds; whole numbers are cut off, not rounded.
float rounded(float x, bool whole, float bound) {
  x = std::clamp(x, 0.0f, bound);
  return whole ? std::trunc(x) : x;
}

float gray(const Image& image, int64_t pixel) {
  if (image.channels != 3) return image.at[static_cast<size_t>(pixel)];
  float sum = 0.2989f * image.channel(0)[pixel] + 0.587f * image.channel(1)[pixel] +
              0.114f * image.channel(2)[pixel];
  return image.whole ? std::floor(sum) : sum;
}

float blended(float from, float to, float ratio, const Image& image) {
  return rounded(from * ratio + to * (1 - ratio), image.whole, image.bound());
}

struct Rgb {
  float r, g, b;
};

float within_one(float x) {
  return std::min(std::max(x, 0.0f), 1.0f);
}

// Both values are made, so that a loop over pixels has no branch and runs in vectors: hues of a
// picture are in no order, and half of all branches would be guessed wrong.
float either(bool first, float a, float b) {
  uint32_t mask = 0u - static_cast<uint32_t>(first);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) |
                              (std::bit_cast<uint32_t>(b) & ~mask));
}

// To hue, saturation and value and back, as _rgb_to_hsv and _hsv_to_rgb, which follow Pillow's
// Convert.c. turn: -0.5 to 0.5.
Rgb rotated(const Rgb& x, float turn) {
  float most = std::max(std::max(x.r, x.g), x.b), least = std::min(std::min(x.r, x.g), x.b);
  float range = most - least;
  bool is_gray = range == 0;
  float by = either(is_gray, 1, range);
  float rc = (most - x.r) / by, gc = (most - x.g) / by, bc = (most - x.b) / by;
  float sixths = either(most == x.r, bc - gc, either(most == x.g, 2 + rc - bc, 4 + gc - rc));
  float hue = sixths / 6 + 1;  // below 2
  hue = either(is_gray, 0, hue - either(hue >= 1, 1, 0)) + turn;
  hue += either(hue < 0, 1, 0);
  hue -= either(hue >= 1, 1, 0);
  float at = hue * 6;
  auto sector = static_cast<int32_t>(at);
  float f = at - static_cast<float>(sector), v = most, s = range / either(is_gray, 1, most);
  float p = within_one(v * (1 - s)), q = within_one(v * (1 - s * f));
  float t = within_one(v * (1 - s * (1 - f)));
  sector -= 6 * (sector == 6);  // where the product rounded up
  return {
      either((sector == 0) | (sector == 5), v, either(sector == 1, q, either(sector == 4, t, p))),
      either((sector == 1) | (sector == 2), v, either(sector == 3, q, either(sector == 0, t, p))),
      either((sector == 3) | (sector == 4), v, either(sector == 5, q, either(sector == 2, t, p)))};
}

}  // namespace

void adjust_brightness(Image& image, float factor) {
  for (float& x : image.at)
    x = rounded(x * factor, image.whole, image.bound());
}

void adjust_contrast(Image& image, float factor) {
  // Of all channels where they are not three: torchvision takes one or three.
  int64_t n = image.channels == 3 ? image.plane() : static_cast<int64_t>(image.at.size());
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(gray(image, i));
  auto mean = static_cast<float>(sum / static_cast<double>(n));
  for (float& x : image.at)
    x = blended(x, mean, factor, image);
}

void adjust_saturation(Image& image, float factor) {
  if (image.channels != 3) return;
  for (int64_t i = 0; i < image.plane(); ++i) {
    float pale = gray(image, i);
    for (int64_t c = 0; c < 3; ++c)
      image.channel(c)[i] = blended(image.channel(c)[i], pale, factor, image);
  }
}

void adjust_hue(Image& image, float turn) {
  if (image.channels != 3) return;
  float* __restrict r = image.channel(0);
  float* __restrict g = image.channel(1);
  float* __restrict b = image.channel(2);
  const float bound = image.bound();
  for (int64_t i = 0; i < image.plane(); ++i) {
    Rgb x = rotated({r[i] / bound, g[i] / bound, b[i] / bound}, turn);
    r[i] = x.r;
    g[i] = x.g;
    b[i] = x.b;
  }
  if (!image.whole) return;
  for (float& x : image.at)  // to_dtype(uint8, scale=True): 256 equal steps
    x = std::trunc(x * (256.0f - 1e-3f));
}

}  // namespace tenon::augment

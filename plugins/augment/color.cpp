// SPDX-License-Identifier: Apache-2.0
#include "color.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon::augment {
namespace {

// Within the bounds; whole numbers are cut off, not rounded.
float settled(float x, bool whole, float bound) {
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
  return settled(from * ratio + to * (1 - ratio), image.whole, image.bound());
}

struct Hsv {
  float hue, saturation, value;
};

// Both ways as _rgb_to_hsv and _hsv_to_rgb, which follow Pillow's Convert.c.
Hsv hsv_of(float r, float g, float b) {
  float least = std::min({r, g, b}), most = std::max({r, g, b}), range = most - least;
  if (range == 0) return {0, 0, most};
  float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
  float sixths = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
  return {std::fmod(sixths / 6 + 1, 1.0f), range / most, most};
}

std::array<float, 3> rgb_of(const Hsv& color) {
  float sixths = color.hue * 6, whole = std::floor(sixths), f = sixths - whole;
  float v = color.value, s = color.saturation;
  float p = std::clamp(v * (1 - s), 0.0f, 1.0f), q = std::clamp(v * (1 - s * f), 0.0f, 1.0f);
  float t = std::clamp(v * (1 - s * (1 - f)), 0.0f, 1.0f);
  const std::array<std::array<float, 3>, 6> of = {
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  return of[static_cast<size_t>(static_cast<int>(whole) % 6)];
}

}  // namespace

void adjust_brightness(Image& image, float factor) {
  for (float& x : image.at)
    x = settled(x * factor, image.whole, image.bound());
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
  for (int64_t i = 0; i < image.plane(); ++i) {
    std::array<float, 3> rgb{};
    for (int64_t c = 0; c < 3; ++c)
      rgb[static_cast<size_t>(c)] = image.channel(c)[i] / image.bound();
    Hsv color = hsv_of(rgb[0], rgb[1], rgb[2]);
    color.hue += turn;
    color.hue -= std::floor(color.hue);
    rgb = rgb_of(color);
    for (int64_t c = 0; c < 3; ++c) {
      float x = rgb[static_cast<size_t>(c)];
      // to_dtype(uint8, scale=True): 256 equal steps.
      image.channel(c)[i] = image.whole ? std::trunc(x * (256.0f - 1e-3f)) : x;
    }
  }
}

}  // namespace tenon::augment

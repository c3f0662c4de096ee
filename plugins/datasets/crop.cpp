// SPDX-License-Identifier: Apache-2.0
#include "crop.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::datasets {
namespace {

constexpr int64_t kMaxSide = 16384;

Result<std::vector<int64_t>> sides(const Options& options, std::string_view key) {
  std::vector<int64_t> out = ints_of(options.get(key));
  if (out.size() > 2) return invalid(cat("option ", key, ": expected one or two numbers"));
  for (int64_t side : out)
    if (side < 1 || side > kMaxSide)
      return invalid(cat("option ", key, ": expected 1 to ", kMaxSide, ", got ", side));
  return out;
}

}  // namespace

Result<Preparation> Preparation::from(const Options& options) {
  Preparation out;
  TN_TRY(resize, sides(options, "resize"));
  TN_TRY(crop, sides(options, "crop"));
  out.resize = resize;
  out.crop = crop;
  if (out.crop.size() == 1) out.crop.resize(2, crop[0]);
  out.bgr = options.text("color") == "bgr";
  out.channels = options.text("color") == "gray" ? 1 : 3;
  out.scale = options.number("scale", out.scale);
  TN_TRY(mean, options.for_each_of("mean", out.channels, 0));
  TN_TRY(deviation, options.for_each_of("std", out.channels, 1));
  for (double value : deviation)
    if (!(value > 0)) return invalid("option std: expected numbers above 0");
  out.mean = mean;
  out.deviation = deviation;
  out.channels_last = options.text("layout") == "nhwc";
  return out;
}

Result<Picture> Preparation::shaped(Picture picture) const {
  if (!resize.empty()) {
    int64_t height = resize[0], width = resize.back();
    if (resize.size() == 1) {
      double ratio = static_cast<double>(resize[0]) /
                     static_cast<double>(std::min(picture.height, picture.width));
      height =
          std::max<int64_t>(resize[0], std::llround(static_cast<double>(picture.height) * ratio));
      width =
          std::max<int64_t>(resize[0], std::llround(static_cast<double>(picture.width) * ratio));
      if (height > kMaxSide || width > kMaxSide)
        return invalid(cat("too long to resize: ", picture.width, "x", picture.height));
    }
    TN_TRY(scaled, resized(picture, height, width));
    picture = std::move(scaled);
  }
  if (crop.empty()) return picture;
  if (picture.height < crop[0] || picture.width < crop[1])
    return invalid(cat("expected at least ", crop[0], "x", crop[1], " (height x width) for option ",
                       "crop, got ", picture.height, "x", picture.width));
  Picture out{crop[0], crop[1], picture.channels, {}};
  int64_t top = (picture.height - crop[0]) / 2, left = (picture.width - crop[1]) / 2;
  for (int64_t y = 0; y < crop[0]; ++y) {
    auto from = picture.samples.begin() + ((top + y) * picture.width + left) * picture.channels;
    out.samples.insert(out.samples.end(), from, from + crop[1] * picture.channels);
  }
  return out;
}

void Preparation::write(const Picture& picture, float* out) const {
  int64_t pixels = picture.height * picture.width;
  for (int64_t c = 0; c < channels; ++c) {
    size_t slot = static_cast<size_t>(c);
    int64_t source = bgr ? channels - 1 - c : c;
    for (int64_t p = 0; p < pixels; ++p) {
      double sample = picture.samples[static_cast<size_t>(p * channels + source)];
      double value = (sample * scale - mean[slot]) / deviation[slot];
      out[channels_last ? p * channels + c : c * pixels + p] = static_cast<float>(value);
    }
  }
}

std::vector<int64_t> Preparation::shape(int64_t height, int64_t width) const {
  if (channels_last) return {height, width, channels};
  return {channels, height, width};
}

}  // namespace tenon::datasets

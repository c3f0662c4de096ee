// SPDX-License-Identifier: Apache-2.0
// "augment.crop": a part of the padded image, at a random position. torchvision's RandomCrop.
#include <algorithm>
#include <cmath>

#include "each_image.hpp"
#include "rectangle.hpp"

namespace tenon::augment {
namespace {

enum class Beyond { kValue, kEdge, kReflect };  // the edge

// The row or column that stands there, or -1 where it is the fill value.
int64_t source(int64_t at, int64_t n, Beyond beyond) {
  if (at >= 0 && at < n) return at;
  if (beyond == Beyond::kValue) return -1;
  if (beyond == Beyond::kEdge || n == 1) return std::clamp<int64_t>(at, 0, n - 1);
  int64_t period = 2 * (n - 1), folded = ((at % period) + period) % period;
  return std::min(folded, period - folded);
}

class Crop {
 public:
  static Result<Crop> create(const Options& options, const Field& given) {
    TN_TRY(image, image_of(given));
    TN_TRY(size, size_option(options, image));
    Crop out{given,
             options.integer("padding"),
             size[0],
             size[1],
             static_cast<float>(options.number("fill")),
             Beyond::kValue};
    int64_t room_y = image.height + 2 * out.padding, room_x = image.width + 2 * out.padding;
    if (out.height > room_y || out.width > room_x)
      return invalid(cat("option size: expected at most the padded image (", room_y, "x", room_x,
                         "), got ", out.height, "x", out.width));
    std::string mode = options.text("padding_mode");
    if (mode != "constant") out.beyond = mode == "edge" ? Beyond::kEdge : Beyond::kReflect;
    if (out.beyond == Beyond::kReflect && out.padding >= std::min(image.height, image.width))
      return invalid(cat("option padding: expected less than the image's shorter side to reflect, ",
                         "got ", out.padding));
    if (image.whole && (out.fill != std::clamp(std::nearbyint(out.fill), 0.0f, 255.0f)))
      return invalid(
          cat("option fill: expected a whole number from 0 to 255 for uint8, got ", out.fill));
    return out;
  }
  static Result<Image> sample(const Field& field) { return image_of(field); }
  Field made() const { return given.of_size(height, width); }
  void apply(const Image& in, Image& out, Draws& draws) const {
    int64_t top = draws.below(in.height + 2 * padding - height + 1) - padding;
    int64_t left = draws.below(in.width + 2 * padding - width + 1) - padding;
    for (int64_t row = 0; row < in.channels * height; ++row) {
      int64_t c = row / height, from_y = source(top + row % height, in.height, beyond);
      float* to = out.at.data() + row * width;
      for (int64_t x = 0; x < width; ++x) {
        int64_t from_x = source(left + x, in.width, beyond);
        to[x] = from_x < 0 || from_y < 0 ? fill : in.channel(c)[from_y * in.width + from_x];
      }
    }
  }

  Field given;
  int64_t padding, height, width;
  float fill;
  Beyond beyond;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(crop,
                   tenon::augment::Crop,
                   "augment.crop",
                   "a part of the padded image, at a random position",
                   R"(
    "size": {"type": ["integer", "array"], "items": {"type": "integer"}, "description": "[height, width], or one side of a square; default: the image's"},
    "padding": {"type": "integer", "minimum": 0, "maximum": 4096, "default": 0, "description": "padding in pixels"},
    "padding_mode": {"type": "string", "enum": ["constant", "edge", "reflect"], "default": "constant", "description": "padding mode"},
    "fill": {"type": "number", "default": 0, "description": "value of constant padding"},)")

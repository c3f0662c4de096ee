// SPDX-License-Identifier: Apache-2.0
// "augment.erasing": writes over a rectangle of drawn size, shape and position (Zhong et al. 2020).
// torchvision's RandomErasing.
#include <algorithm>
#include <cmath>

#include "each_image.hpp"
#include "rectangle.hpp"

namespace tenon::augment {
namespace {

class Erasing {
 public:
  static Result<Erasing> create(const Options& options, const Field& given) {
    TN_TRY(image, image_of(given));
    TN_TRY(shares, Shares::from(options));
    Erasing out{given, options.number("p"), shares, static_cast<float>(options.number("value")),
                options.text("fill") == "normal"};
    if (image.whole && out.normal)
      return invalid("option fill: normal numbers need float32: put augment.normalize before it");
    if (image.whole && out.value != std::clamp(std::nearbyint(out.value), 0.0f, 255.0f))
      return invalid(
          cat("option value: expected a whole number from 0 to 255 for uint8, got ", out.value));
    return out;
  }
  static Result<Image> sample(const Field& field) { return image_of(field); }
  Field made() const { return given; }
  void apply(const Image& in, Image& out, Draws& draws) const {
    out.at = in.at;
    if (!draws.chance(p)) return;
    Rectangle hole = drawn_hole(in.height, in.width, shares, draws);
    for (int64_t c = 0; c < in.channels; ++c) {
      for (int64_t y = hole.top; y < hole.top + hole.height; ++y) {
        float* row = out.channel(c) + y * in.width + hole.left;
        if (normal)
          draws.normal({row, static_cast<size_t>(hole.width)});
        else
          std::fill_n(row, hole.width, value);
      }
    }
  }

  Field given;
  double p;
  Shares shares;
  float value;
  bool normal;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(erasing,
                   tenon::augment::Erasing,
                   "augment.erasing",
                   "writes over a rectangle of random size, shape and position",
                   R"(
    "p": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "probability that an image is erased"},
    "scale": {"type": "array", "items": {"type": "number"}, "default": [0.02, 0.33], "description": "least and largest share of the area"},
    "ratio": {"type": "array", "items": {"type": "number"}, "default": [0.3, 3.3], "description": "least and largest height over width"},
    "fill": {"type": "string", "enum": ["value", "normal"], "default": "value", "description": "with one value, or with standard normal numbers"},
    "value": {"type": "number", "default": 0, "description": "the value"},)")

// SPDX-License-Identifier: Apache-2.0
// "augment.resized_crop": a part of drawn size, shape and position, resized. torchvision's
// RandomResizedCrop, bilinear with antialiasing.
#include "each_image.hpp"
#include "resize.hpp"

namespace tenon::augment {
namespace {

class ResizedCrop {
 public:
  static Result<ResizedCrop> create(const Options& options, const Field& given) {
    TN_TRY(image, image_of(given));
    TN_TRY(size, size_option(options, image));
    TN_TRY(shares, Shares::from(options));
    if (!(shares.scale[1] > 0)) return invalid("option scale: expected a share above 0");
    return ResizedCrop{given, size[0], size[1], shares};
  }
  static Result<Image> sample(const Field& field) { return image_of(field); }
  Field made() const { return given.of_size(height, width); }
  void apply(const Image& in, Image& out, Draws& draws) const {
    resized(in, drawn_crop(in.height, in.width, shares, draws), out);
  }

  Field given;
  int64_t height, width;
  Shares shares;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(resized_crop,
                   tenon::augment::ResizedCrop,
                   "augment.resized_crop",
                   "a part of random size, shape and position, resized",
                   R"(
    "size": {"type": ["integer", "array"], "items": {"type": "integer"}, "description": "[height, width], or one side of a square; default: the image's"},
    "scale": {"type": "array", "items": {"type": "number"}, "default": [0.08, 1.0], "description": "least and largest share of the area"},
    "ratio": {"type": "array", "items": {"type": "number"}, "default": [0.75, 1.3333333333333333], "description": "least and largest width over height"},)")

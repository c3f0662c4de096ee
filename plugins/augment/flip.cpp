// SPDX-License-Identifier: Apache-2.0
// "augment.flip": mirrors a part of the images. torchvision's RandomHorizontalFlip,
// RandomVerticalFlip.
#include <algorithm>

#include "each_image.hpp"

namespace tenon::augment {
namespace {

class Flip {
 public:
  static Result<Flip> create(const Options& options, const Field& given) {
    return Flip{given, options.number("p"), options.text("direction") == "vertical"};
  }
  static Result<Image> sample(const Field& field) { return image_of(field); }
  Field made() const { return given; }
  void apply(const Image& in, Image& out, Draws& draws) const {
    out.at = in.at;
    if (!draws.chance(p)) return;
    for (int64_t row = 0; row < in.channels * in.height; ++row) {
      int64_t c = row / in.height, y = row % in.height;
      const float* from = in.channel(c) + (vertical ? in.height - 1 - y : y) * in.width;
      float* to = out.channel(c) + y * in.width;
      if (vertical)
        std::copy_n(from, in.width, to);
      else
        std::reverse_copy(from, from + in.width, to);
    }
  }

  Field given;
  double p;
  bool vertical;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(flip,
                   tenon::augment::Flip,
                   "augment.flip",
                   "mirrors a part of the images",
                   R"(
    "p": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "probability of a flip"},
    "direction": {"type": "string", "enum": ["horizontal", "vertical"], "default": "horizontal", "description": "left and right, or top and bottom, are swapped"},)")

// SPDX-License-Identifier: Apache-2.0
// "augment.color_jitter": brightness, contrast, saturation and hue by random factors, in random
// order. torchvision's ColorJitter.
#include <algorithm>

#include "color.hpp"
#include "each_image.hpp"
#include "rectangle.hpp"

namespace tenon::augment {
namespace {

struct Adjustment {
  std::string_view option;
  double middle;                 // which changes nothing
  std::array<double, 2> bounds;  // of the factor
  void (*adjust)(Image&, float);
};

constexpr double kMost = 1e3;
constexpr std::array<Adjustment, 4> kAdjustments = {{
    {"brightness", 1, {0, kMost}, adjust_brightness},
    {"contrast", 1, {0, kMost}, adjust_contrast},
    {"saturation", 1, {0, kMost}, adjust_saturation},
    {"hue", 0, {-0.5, 0.5}, adjust_hue},
}};

class ColorJitter {
 public:
  static Result<ColorJitter> create(const Options& options, const Field& given) {
    TN_TRY(image, image_of(given));
    if (image.channels != 1 && image.channels != 3)
      return invalid(cat("field ", given.name, ": expected 1 or 3 channels, got ", image.channels));
    ColorJitter out{given, {}};
    for (size_t i = 0; i < kAdjustments.size(); ++i) {
      const Adjustment& one = kAdjustments[i];
      tn_any option = options.get(one.option);
      double spread = float_of(option, 0);
      std::array<double, 2> range = {std::max(one.middle - spread, one.bounds[0]),
                                     one.middle + spread};
      if (option.tag != TN_ANY_F64 && option.tag != TN_ANY_I64) {
        TN_TRY(given_range, range_option(options, one.option, one.bounds));
        range = given_range;
      }
      if (!(spread >= 0) || range[1] > one.bounds[1])
        return invalid(cat("option ", one.option, ": expected a number from 0 to ",
                           one.bounds[1] - one.middle, ", got ", spread));
      out.ranges[i] = range;
    }
    return out;
  }
  static Result<Image> sample(const Field& field) { return image_of(field); }
  Field made() const { return given; }
  void apply(const Image& in, Image& out, Draws& draws) const {
    out.at = in.at;
    std::array<size_t, kAdjustments.size()> order = {0, 1, 2, 3};
    for (size_t i = order.size(); i-- > 1;)
      std::swap(order[i], order[static_cast<size_t>(draws.below(static_cast<int64_t>(i) + 1))]);
    for (size_t i : order) {
      double factor = draws.between(ranges[i][0], ranges[i][1]);
      bool is_idle =
          ranges[i][0] == kAdjustments[i].middle && ranges[i][1] == kAdjustments[i].middle;
      if (!is_idle) kAdjustments[i].adjust(out, static_cast<float>(factor));
    }
  }

  Field given;
  std::array<std::array<double, 2>, kAdjustments.size()> ranges;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(color_jitter,
                   tenon::augment::ColorJitter,
                   "augment.color_jitter",
                   "brightness, contrast, saturation and hue by random factors",
                   R"(
    "brightness": {"type": ["number", "array"], "items": {"type": "number"}, "default": 0, "description": "how far the factor may be from 1, or its least and largest value"},
    "contrast": {"type": ["number", "array"], "items": {"type": "number"}, "default": 0, "description": "the same"},
    "saturation": {"type": ["number", "array"], "items": {"type": "number"}, "default": 0, "description": "the same"},
    "hue": {"type": ["number", "array"], "items": {"type": "number"}, "default": 0, "description": "maximum rotation of the hue, at most 0.5, or its minimum and maximum"},)")

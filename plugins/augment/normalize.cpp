// SPDX-License-Identifier: Apache-2.0
// "augment.normalize": (x * scale - mean) / std for each channel. torchvision's ToDtype(scale=True)
// and Normalize.
#include "each_image.hpp"

namespace tenon::augment {
namespace {

class Normalize {
 public:
  static Result<Normalize> create(const Options& options, const Field& given) {
    TN_TRY(image, numbers_of(given));
    TN_TRY(mean, options.for_each_of("mean", image.channels, 0));
    TN_TRY(deviation, options.for_each_of("std", image.channels, 1));
    for (double value : deviation)
      if (!(value > 0)) return invalid(cat("option std: expected numbers above 0, got ", value));
    double scale = options.number("scale", image.whole ? 1.0 / 255 : 1);
    return Normalize{given, scale, mean, deviation};
  }
  static Result<Image> sample(const Field& field) { return numbers_of(field); }
  Field made() const {
    Field out = given;
    out.dtype = TN_F32;
    return out;
  }
  void apply(const Image& in, Image& out, Draws&) const {
    for (int64_t c = 0; c < in.channels; ++c) {
      auto slot = static_cast<size_t>(c);
      for (int64_t i = 0; i < in.plane(); ++i)
        out.channel(c)[i] = static_cast<float>(
            (static_cast<double>(in.channel(c)[i]) * scale - mean[slot]) / deviation[slot]);
    }
  }

  Field given;
  double scale;
  std::vector<double> mean, deviation;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(normalize,
                   tenon::augment::Normalize,
                   "augment.normalize",
                   "(x * scale - mean) / std of each channel, as float32",
                   R"(
    "scale": {"type": "number", "description": "scale of each element, applied first; default: 1/255 of uint8, 1 of float32"},
    "mean": {"type": ["number", "array"], "items": {"type": "number"}, "default": 0, "description": "mean: one value, or one for each channel"},
    "std": {"type": ["number", "array"], "items": {"type": "number"}, "default": 1, "description": "standard deviation, likewise"},)")

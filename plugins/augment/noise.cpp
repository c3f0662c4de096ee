// SPDX-License-Identifier: Apache-2.0
// "augment.noise": adds normal numbers. torchvision's GaussianNoise.
#include <algorithm>
#include <cmath>

#include "each_image.hpp"

namespace tenon::augment {
namespace {

class Noise {
 public:
  static Result<Noise> create(const Options& options, const Field& given) {
    return Noise{given, static_cast<float>(options.number("mean")),
                 static_cast<float>(options.number("sigma")), options.flag("clip")};
  }
  static Result<Image> sample(const Field& field) { return numbers_of(field); }
  Field made() const { return given; }
  void apply(const Image& in, Image& out, Draws& draws) const {
    draws.normal(out.at);
    for (size_t i = 0; i < in.at.size(); ++i) {
      float x = in.at[i] + (mean + sigma * out.at[i]) * in.bound();
      if (in.whole) x = std::nearbyint(x);
      out.at[i] = clip || in.whole ? std::clamp(x, 0.0f, in.bound()) : x;
    }
  }

  Field given;
  float mean, sigma;
  bool clip;
};

}  // namespace
}  // namespace tenon::augment

TENON_AUGMENTATION(noise,
                   tenon::augment::Noise,
                   "augment.noise",
                   "adds normal numbers",
                   R"(
    "sigma": {"type": "number", "minimum": 0, "default": 0.1, "description": "their standard deviation, where white is 1"},
    "mean": {"type": "number", "default": 0, "description": "their mean"},
    "clip": {"type": "boolean", "default": true, "description": "keeps float32 within 0 to 1; false for what is no picture"},)")

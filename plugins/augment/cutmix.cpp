// SPDX-License-Identifier: Apache-2.0
// "augment.cutmix": a box of another sample, and its share of the label (Yun et al. 2019).
#include <algorithm>

#include "each_image.hpp"
#include "mixing.hpp"
#include "rectangle.hpp"

namespace tenon::augment {
namespace {

class Cutmix {
 public:
  static Status accepts(const Field& image) { return image_of(image).status(); }
  Cutmix(const Mixing& of, Draws& draws)
      : box_(drawn_box(of.image.height, of.image.width, draws.beta(of.alpha), draws)),
        share_(1 - static_cast<double>(box_.height * box_.width) /
                       static_cast<double>(of.image.plane())) {}
  double share() const { return share_; }
  void mix(Image& own, const Image& other) const {
    for (int64_t c = 0; c < own.channels; ++c)
      for (int64_t y = box_.top; y < box_.top + box_.height; ++y)
        std::copy_n(other.channel(c) + y * own.width + box_.left, box_.width,
                    own.channel(c) + y * own.width + box_.left);
  }

 private:
  Rectangle box_;
  double share_;
};

}  // namespace
}  // namespace tenon::augment

TENON_MIXING(cutmix,
             tenon::augment::Cutmix,
             "augment.cutmix",
             "a box of another sample, and its share of the label")

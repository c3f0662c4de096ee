// SPDX-License-Identifier: Apache-2.0
// "augment.mixup": weighted means of two samples and of their labels (Zhang et al. 2018).
#include "each_image.hpp"
#include "mixing.hpp"

namespace tenon::augment {
namespace {

class Mixup {
 public:
  static Status accepts(const Field& image) {
    if (image.dtype == TN_F32) return {};
    return invalid(cat("field ", image.name, ": expected float32, got ", dtype_name(image.dtype),
                       ": put augment.normalize before it"));
  }
  Mixup(const Mixing& of, Draws& draws) : share_(draws.beta(of.alpha)) {}
  double share() const { return share_; }
  void mix(Image& own, const Image& other) const {
    auto share = static_cast<float>(share_), rest = static_cast<float>(1 - share_);
    for (size_t i = 0; i < own.at.size(); ++i)
      own.at[i] = other.at[i] * rest + own.at[i] * share;
  }

 private:
  double share_;
};

}  // namespace
}  // namespace tenon::augment

TENON_MIXING(mixup,
             tenon::augment::Mixup,
             "augment.mixup",
             "weighted means of two samples and of their labels")

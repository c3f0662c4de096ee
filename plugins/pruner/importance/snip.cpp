// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.snip": how much the loss feels a weight, the size of gradient times weight
// (Lee, Ajanthan and Torr, "SNIP", ICLR 2019, eq. 6): for networks that are not trained yet. Of a
// channel the sizes are summed, so that weights that pull against each other do not cancel.
#include <cmath>

#include "saliency.hpp"

namespace tenon::pruner {
namespace {

struct Snip {
  static constexpr Over kOver = Over::kAll;
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static double of(double change) { return std::abs(change); }
  static double total(double sum) { return sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(snip,
                 tenon::pruner::Saliency<tenon::pruner::Snip>,
                 "pruner.importance.snip",
                 "size of gradient times weight, before training; needs data with labels",
                 "{}")

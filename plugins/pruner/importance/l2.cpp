// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.l2": the root of the sum of squares of a channel's weights, in the layers that
// make it and in those that read it (Li et al., "Pruning filters for efficient ConvNets", 2017).
#include <cmath>

#include "magnitude.hpp"

namespace tenon::pruner {
namespace {

struct L2 {
  static double of(double weight) { return weight * weight; }
  static double total(double sum) { return std::sqrt(sum); }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(l2,
                 tenon::pruner::Magnitude<tenon::pruner::L2>,
                 "pruner.importance.l2",
                 "the root of the sum of squares of a channel's weights",
                 PRUNER_MAGNITUDE_OPTIONS)

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.l1": the sum of magnitudes of a channel's weights, in the layers that
// make it and in those that read it (Li et al., "Pruning filters for efficient ConvNets", 2017).
#include <cmath>

#include "magnitude.hpp"

namespace tenon::pruner {
namespace {

struct L1 {
  static double of(double weight) { return std::abs(weight); }
  static double total(double sum) { return sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(l1,
                 tenon::pruner::Magnitude<tenon::pruner::L1>,
                 "pruner.importance.l1",
                 "the sum of magnitudes of a channel's weights",
                 PRUNER_MAGNITUDE_OPTIONS)

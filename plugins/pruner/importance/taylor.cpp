// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.taylor": by how much the loss would change to first order when a channel goes,
// squared (Molchanov et al., "Importance estimation for neural network pruning", CVPR 2019, eq. 8).
// The sum of gradient times weight over all weights that read a channel is the gradient by a gate
// on it, whatever normalization made it; where nothing reads it, those that make it serve. A single
// weight is its own gate.
#include "saliency.hpp"

namespace tenon::pruner {
namespace {

struct Taylor {
  static constexpr Over kOver = Over::kReadersOrMakers;
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static double of(double change) { return change; }
  static double total(double sum) { return sum * sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(taylor,
                 tenon::pruner::Saliency<tenon::pruner::Taylor>,
                 "pruner.importance.taylor",
                 "squared change of the loss to first order; needs data with labels",
                 "{}")

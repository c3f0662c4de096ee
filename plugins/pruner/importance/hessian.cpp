// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.hessian": half the second derivative of the loss by a weight times its square,
// what removing it costs where the gradient vanishes (LeCun et al., "Optimal brain damage", 1990,
// eq. 5). The second derivatives are the diagonal of the empirical Fisher matrix: the mean over
// batches of squared gradients, so that batches of one sample come nearest to it. A channel is
// worth the sum over the weights that read it, or that make it where nothing does.
#include "saliency.hpp"

namespace tenon::pruner {
namespace {

struct Hessian {
  static constexpr Over kOver = Over::kReadersOrMakers;
  static constexpr uint32_t kNeeds = TN_IMPORTANCE_GRADIENTS;
  static double of(double change) { return 0.5 * change * change; }
  static double total(double sum) { return sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(hessian,
                 tenon::pruner::Saliency<tenon::pruner::Hessian>,
                 "pruner.importance.hessian",
                 "half the Hessian's diagonal times squared weights; needs data with labels",
                 "{}")

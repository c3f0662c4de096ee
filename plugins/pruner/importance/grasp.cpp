// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.grasp": by how much the flow of gradients, the squared norm of the loss's
// gradient, falls when a weight goes: weight times Hessian times gradient (Wang, Zhang and Grosse,
// "Picking winning tickets before training by preserving gradient flow", ICLR 2020, eq. 8, with the
// sign reversed: what scores least, below zero, holds the flow back). The gradient is the mean over
// all batches. For networks that are not trained yet. (The paper also divides the network's scores
// by 200, so that its softmax is nearly even; here the loss is the model's own.)
#include "saliency.hpp"

namespace tenon::pruner {
namespace {

struct Grasp {
  static constexpr Over kOver = Over::kAll;
  static constexpr uint32_t kNeeds = kImportanceGradientFlow;
  static double of(double change) { return change; }
  static double total(double sum) { return sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(grasp,
                 tenon::pruner::Saliency<tenon::pruner::Grasp>,
                 "pruner.importance.grasp",
                 "what the flow of gradients loses, before training; needs data with labels",
                 "{}")

// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.taylor2": as pruner.importance.taylor, to second order (Molchanov et al.,
// "Importance estimation for neural network pruning", CVPR 2019, eq. 7): gradient times weight less
// half of weight times Hessian times weights, with the whole Hessian of each batch's loss, by one
// Hessian-vector product. The paper finds that it pays little over first order, at twice the time.
#include "saliency.hpp"

namespace tenon::pruner {
namespace {

struct Taylor2 {
  static constexpr Over kOver = Over::kReadersOrMakers;
  static constexpr uint32_t kNeeds = kImportanceSecondOrder;
  static double of(double change) { return change; }
  static double total(double sum) { return sum * sum; }
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(taylor2,
                 tenon::pruner::Saliency<tenon::pruner::Taylor2>,
                 "pruner.importance.taylor2",
                 "squared change of the loss to second order; needs data with labels",
                 "{}")

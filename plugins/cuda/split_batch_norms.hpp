// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalization over a batch and its gradient in two: sums over everything but the channels, and
// pointwise nodes that use them, which join what follows.

#include "lowering.hpp"

namespace tenon::cuda {

Imported split_batch_norms(const Imported& graph);

}  // namespace tenon::cuda

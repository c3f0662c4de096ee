// SPDX-License-Identifier: Apache-2.0
#pragma once
// Biases that the kernel of a node does not add become pointwise nodes, which join what follows.

#include "lowering.hpp"

namespace tenon::cuda {

Imported split_biases(const Imported& graph, const Target& target);

}  // namespace tenon::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products read an operand whose last two axes a Transpose exchanges as it lies before that.

#include "lowering.hpp"

namespace tenon::cuda {

Imported fold_transposes(const Imported& graph, const Target& target);

}  // namespace tenon::cuda

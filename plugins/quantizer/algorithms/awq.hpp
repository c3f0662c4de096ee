// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activation-aware weight quantization (Lin et al., MLSys 2024): channels that carry much are
// multiplied before weights are rounded, so that they keep more of their digits.

#include "input_factors.hpp"

namespace tenon::quantizer {

// Tries no factors, and exponents from 0.05 to 1 in steps of a twentieth: factor =
// mean|x|^exponent, over the geometric mean of the largest and the smallest. Inputs stay float;
// weights are rounded as `quantizer.weights` does it: to int4, with a clipped scale for each
// `group` columns.
InputFactors activation_aware(const ScaledLayer& layer, int64_t group);

}  // namespace tenon::quantizer

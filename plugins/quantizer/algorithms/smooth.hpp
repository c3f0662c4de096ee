// SPDX-License-Identifier: Apache-2.0
#pragma once
// SmoothQuant (Xiao et al., ICML 2023) with its exponent chosen by what the product loses.

#include "input_factors.hpp"

namespace tenon::quantizer {

// Tries no factors, and alpha from 0 to 1 in steps of a tenth: factor = max|x|^alpha /
// max|w|^(1 - alpha). Inputs are rounded to uint8 by their ends, weights to int8 by output channel.
InputFactors smoothed(const ScaledLayer& layer);

}  // namespace tenon::quantizer

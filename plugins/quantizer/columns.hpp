// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factors for the columns of a stored weight. A scale for each row leaves no digits to a column
// that is small beside the others; where what it is multiplied with is large (an input in another
// unit), much of the result is made of it. Plain numbers; no graph.

#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::quantizer {

// The largest size of each column, [columns] along the last axis, where rounding by rows leaves
// columns twice the noise, over their own signal and on average, that rounding without these
// factors does; else nothing. tensor: float32, dense; rows: the axis of scales, which is not the
// last one.
std::vector<float> column_factors(const DLTensor& tensor, int64_t rows);

// Each number over the factor of its column.
std::vector<float> without_factors(const DLTensor& tensor, const std::vector<float>& factors);

}  // namespace tenon::quantizer

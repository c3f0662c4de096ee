// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// None are given, or constants that are all 0.
bool are_zero_points_zero(Value zeros);

// Constants behind a DequantizeLinear, or floats as they are: floating-point numbers, row-major.
struct Known {
  Value numbers;              // int8, int32 or float constants
  std::vector<double> scale;  // one, or one for each index of `axis`
  int64_t axis = 0;
};
// nullopt: not constant, or with zero points.
std::optional<Known> known_of(Value v);
// All of a constant's numbers; empty: it is none, or behind a DequantizeLinear with several scales.
std::vector<double> numbers_of(Value v);
// A known vector, along the last axis, in steps of these sizes, one for each of its numbers: whole,
// of any size; empty: it is of another kind.
std::vector<double> in_steps(Value v, const std::vector<double>& steps);
// A matrix of int8 constants with its axes swapped.
Result<Value> transposed(EditView edit, Value integers);

}  // namespace tenon::quantizer

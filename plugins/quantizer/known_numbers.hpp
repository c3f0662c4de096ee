// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

// Constants behind a DequantizeLinear, or floats as they are: real numbers, row-major.
struct Known {
  Value numbers;              // int8, int32 or float constants
  std::vector<double> scale;  // one, or one for each index of `axis`
  int64_t axis = 0;
};
// nullopt: not constant, or with zero points.
std::optional<Known> known_of(Value v);

}  // namespace tenon::quantizer

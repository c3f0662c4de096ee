// SPDX-License-Identifier: Apache-2.0
#pragma once
// Biases as int32 constants with the scale of the products that they are added to.

#include <vector>

#include "tenon/sdk/edit.hpp"

#include "role.hpp"

namespace tenon::quantizer {

// Scales of the weight below which the product's bias would not fit into int32.
std::vector<float> bias_bounds(Node node, const Product& product, float act_scale);

// Stores the product's bias; false when it has none, or none of one number per channel that fits.
Result<bool> store_bias(EditView edit,
                        Node node,
                        const Product& product,
                        const std::vector<float>& weight_scale,
                        float act_scale);

}  // namespace tenon::quantizer

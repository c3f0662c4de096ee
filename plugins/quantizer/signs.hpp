// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signs in the graph: Where(x >= t, 1, -1), so that 0 is +1 (ONNX's Sign has a third value). While
// they are trained the gradient passes straight through where |u| <= 1 and is 0 elsewhere (Hubara
// et al., NIPS 2016, equation 4): sign + (clip(u) - stop(clip(u))), whose bracket is exactly 0.

#include <string>

#include "tenon/sdk/build.hpp"

namespace tenon::quantizer {

// is_positive: bool; u: what the gradient goes to. The result's node has this name.
Value straight_sign(Builder& b, Value is_positive, Value u, const std::string& name);
// Whether a straight_sign made it.
bool is_straight_sign(Value value);
// The node and all that nothing but it has read, where nothing reads it.
Status erase_unused(EditView edit, Node last);
// Signs whose gradients are no more needed as what they are; the number of them.
Result<uint64_t> fold_signs(EditView edit);

}  // namespace tenon::quantizer

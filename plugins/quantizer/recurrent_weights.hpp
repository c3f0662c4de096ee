// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of recurrent cells as a quantized model stores them, with what they are multiplied with:
// those of the inputs with input 0, those of the state with the first output, which holds the state
// of every step. The column `coupling` of an operator's row says which weights are which.

#include "stored_weights.hpp"

namespace tenon::quantizer {

// Of cells that both graphs have a node of one name for. left: is given the others, and why.
std::vector<StoredWeight> recurrent_weights(
    Graph quantized, Graph original, const std::function<void(Node, std::string_view)>& left);

}  // namespace tenon::quantizer

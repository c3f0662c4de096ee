// SPDX-License-Identifier: Apache-2.0
#pragma once
// What pointwise nodes make of given numbers, computed by their own rows with the constants that
// they have.

#include <span>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// Pointwise, with one output, and of its first input alone: the others are constants.
bool is_pointwise_of_one(Node node);

// 0, and numbers of both signs from the smallest to the largest that a model may compute with, each
// four times the one before it.
std::vector<float> points_of_all_sizes();

// The first node reads `numbers`, f32 of this shape, and each other one what the one before makes.
Result<Tensor> values_at(tn_ctx* ctx,
                         std::span<const Node> nodes,
                         const std::vector<float>& numbers,
                         const std::vector<int64_t>& shape);

}  // namespace tenon::quantizer

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What forward and backward handlers of one operator agree on.

#include <string>

#include "conv_geometry.hpp"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

// BatchNormalization with training_mode; the row's lower function hands it on.
void lower_batch_norm_training(Lowering& lowering, int node);

// Under which name a MaxPool that will be differentiated keeps where its maxima were.
std::string max_pool_key(const Window& window);
// The same of our own kernel for dilated windows (dilated_max.hpp).
std::string dilated_max_key(const Window& window);

}  // namespace tenon::onednn

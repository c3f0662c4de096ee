// SPDX-License-Identifier: Apache-2.0
#pragma once
// New quantized values for old ones: what 8-bit numbers of one scale are in another.

#include <array>
#include <memory>
#include <optional>

#include "kernels/quantize.h"
#include "lowering/view.hpp"

namespace tenon::onednn {

struct Requantization {
  std::shared_ptr<std::array<uint8_t, 256>> table;  // null: they stay as they are
};

// Nothing where one of them does not hold 8-bit quantized values of one scale.
std::optional<Requantization> requantization(const View& from, const View& to);

}  // namespace tenon::onednn

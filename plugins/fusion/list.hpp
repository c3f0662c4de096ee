// SPDX-License-Identifier: Apache-2.0
#pragma once
// All rules of fusion.default, in the order of the list in CMakeLists.txt; the build writes it.

#include "rule.hpp"

namespace tenon::fusion {

std::span<const Rule* const> rules();

}  // namespace tenon::fusion

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tenon::host {

inline constexpr std::string_view kVersion = TENON_VERSION;  // the product's, from CMake

}  // namespace tenon::host

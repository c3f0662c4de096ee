// SPDX-License-Identifier: Apache-2.0
#pragma once
// The format's names of element types.

#include <cstdint>
#include <string_view>

namespace tenon::safetensors_plugin {

uint32_t dtype_of_name(std::string_view name);   // TN_DTYPE_NONE: not known
std::string_view name_of_dtype(uint32_t dtype);  // empty: the format has none

}  // namespace tenon::safetensors_plugin

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types and sizes: the one place that knows which DLPack types the host takes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tenon/base.h"

#include "services/status.hpp"

namespace tenon::host {

inline constexpr int32_t kMaxRank = 64;

// "f32"; "type 3/7" for what the host does not know.
std::string dtype_name(uint32_t dtype);
// The short form of any usual name of a type: "bf16" for "bfloat16", "f32" for "fp32" and
// "float32", "i8" for "int8"; other words stay as they are.
std::string type_word(std::string_view name);
// TN_F32 for "f32"; TN_DTYPE_NONE when there is no such type.
uint32_t dtype_by_name(std::string_view name);
bool dtype_known(uint32_t dtype);

inline uint32_t dtype_of(DLDataType type) {
  return type.code | static_cast<uint32_t>(type.bits) << 8 |
         static_cast<uint32_t>(type.lanes) << 16;
}
inline DLDataType dl_type(uint32_t dtype) {
  return {static_cast<uint8_t>(dtype), static_cast<uint8_t>(dtype >> 8),
          static_cast<uint16_t>(dtype >> 16)};
}

// Elements of a dense block; refuses negative sizes and products that do not fit.
Result<uint64_t> element_count(std::span<const int64_t> dims);
// Bytes of so many elements, packed types rounded up.
Result<uint64_t> bytes_of(uint32_t dtype, uint64_t elements);
std::string shape_text(std::span<const int64_t> dims);  // "[2, 3]"

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading the header of a safetensors file.

#include "tenon/sdk/safetensors.hpp"

namespace tenon::safetensors_plugin {

using safetensors::Entry;
using safetensors::Header;
using safetensors::kLengthBytes;

inline constexpr uint64_t kMaxHeader = 100'000'000;  // as the format's own library has it
inline constexpr std::string_view kNoteMetadata = "safetensors.metadata.";  // + key

// text: the JSON. data_bytes: what follows it. Checks types, sizes, ranges and that none overlap.
Result<Header> parse_header(std::string_view text, uint64_t data_bytes);

}  // namespace tenon::safetensors_plugin

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The header of a safetensors file: eight bytes with its length, then a JSON object that says for
// each tensor its type, its shape and where in the rest of the file its data is.

#include <string>
#include <utility>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::safetensors_plugin {

struct Entry {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> dims;
  uint64_t begin = 0;  // in the data
  uint64_t end = 0;
};

struct Header {
  std::vector<Entry> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

inline constexpr uint64_t kLengthBytes = 8;
inline constexpr uint64_t kMaxHeader = 100'000'000;  // as the format's own library has it
inline constexpr std::string_view kNoteMetadata = "safetensors.metadata.";  // + key

// text: the JSON. data_bytes: what follows it. Checks types, sizes, ranges and that none overlap.
Result<Header> parse_header(std::string_view text, uint64_t data_bytes);
// With the length in front, padded so that the data begins at a multiple of 8.
std::string print_header(const Header& header);

}  // namespace tenon::safetensors_plugin

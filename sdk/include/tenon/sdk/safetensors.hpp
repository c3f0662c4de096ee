// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of tensors in the format safetensors: the names of its element types, and its header: eight
// bytes with a length, then a JSON object that says for each tensor its type, its shape and where
// in the rest of the file its data is. Needs nlohmann_json.

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/tensor.hpp"

namespace tenon::safetensors {

struct TypeName {
  std::string_view name;
  uint32_t dtype;
};

inline constexpr TypeName kTypeNames[] = {
    {"BOOL", TN_BOOL},
    {"U8", TN_U8},
    {"I8", TN_I8},
    {"U16", TN_U16},
    {"I16", TN_I16},
    {"U32", TN_U32},
    {"I32", TN_I32},
    {"U64", TN_U64},
    {"I64", TN_I64},
    {"F16", TN_F16},
    {"BF16", TN_BF16},
    {"F32", TN_F32},
    {"F64", TN_F64},
    {"C64", TN_DTYPE(kDLComplex, 64)},
    {"F8_E4M3", TN_DTYPE(kDLFloat8_e4m3fn, 8)},
    {"F8_E5M2", TN_DTYPE(kDLFloat8_e5m2, 8)},
    {"F8_E8M0", TN_DTYPE(kDLFloat8_e8m0fnu, 8)},
    {"F4", TN_DTYPE(kDLFloat4_e2m1fn, 4)},
};

constexpr uint32_t dtype_of_name(std::string_view name) {  // TN_DTYPE_NONE: not known
  for (const TypeName& row : kTypeNames)
    if (row.name == name) return row.dtype;
  return TN_DTYPE_NONE;
}

constexpr std::string_view name_of_dtype(uint32_t dtype) {  // empty: the format has none
  for (const TypeName& row : kTypeNames)
    if (row.dtype == dtype) return row.name;
  return {};
}

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

// With the length in front, padded so that the data begins at a multiple of 8.
inline std::string print_header(const Header& header) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  for (const auto& [key, value] : header.metadata)
    json["__metadata__"][key] = value;
  for (const Entry& entry : header.tensors)
    json[entry.name] = {{"dtype", name_of_dtype(entry.dtype)},
                        {"shape", entry.dims},
                        {"data_offsets", {entry.begin, entry.end}}};
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out;
  for (unsigned i = 0; i < kLengthBytes; ++i)
    out.push_back(static_cast<char>(uint64_t{text.size()} >> 8 * i));
  return out + text;
}

}  // namespace tenon::safetensors

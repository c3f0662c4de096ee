// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types by the names that NumPy and ml_dtypes have for them, and as DLPack writes them.

#include <span>
#include <string>
#include <utility>

#include "tenon/cxx/choice.hpp"

namespace tenon::cxx {

struct DtypeName {
  uint32_t dtype;
  std::string_view name;
};
inline constexpr DtypeName kDtypes[] = {
    {TN_F32, "float32"},
    {TN_F64, "float64"},
    {TN_F16, "float16"},
    {TN_BF16, "bfloat16"},
    {TN_BOOL, "bool"},
    {TN_I8, "int8"},
    {TN_I16, "int16"},
    {TN_I32, "int32"},
    {TN_I64, "int64"},
    {TN_U8, "uint8"},
    {TN_U16, "uint16"},
    {TN_U32, "uint32"},
    {TN_U64, "uint64"},
    {TN_DTYPE(kDLComplex, 64), "complex64"},
    {TN_DTYPE(kDLComplex, 128), "complex128"},
    {TN_I4, "int4"},
    {TN_U4, "uint4"},
    {TN_DTYPE(kDLInt, 2), "int2"},
    {TN_DTYPE(kDLUInt, 2), "uint2"},
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), "float8_e4m3fn"},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), "float8_e4m3fnuz"},
    {TN_DTYPE(kDLFloat8_e5m2, 8), "float8_e5m2"},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), "float8_e5m2fnuz"},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), "float8_e8m0fnu"},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), "float4_e2m1fn"},
};

inline std::string dtype_name(uint32_t dtype) {
  for (const DtypeName& row : kDtypes) {
    if (row.dtype == dtype) return std::string(row.name);
  }
  if (dtype == TN_DTYPE_NONE) return "unknown";
  return cat("code ", TN_DTYPE_CODE(dtype), ", ", TN_DTYPE_BITS(dtype), " bits");
}
// As the text form of graphs writes it: "f32", "bf16", "f8e4m3fn".
inline std::string short_dtype_name(uint32_t dtype) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"bfloat", "bf"}, {"float", "f"}, {"uint", "u"}, {"int", "i"}, {"complex", "c"}};
  std::string name = dtype_name(dtype);
  std::erase(name, '_');
  for (const auto& [form, letters] : kForms)
    if (name.starts_with(form)) return cat(letters, name.substr(form.size()));
  return name;
}
// The long form of a short name: "bfloat16" for "bf16", "float32" for "fp32" and "f32", "int8" for
// "i8"; other words stay as they are.
inline std::string long_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"bf", "bfloat"}, {"fp", "float"}, {"f", "float"},
      {"u", "uint"},    {"i", "int"},    {"c", "complex"}};
  for (const auto& [letters, form] : kForms) {
    bool is_short = name.size() > letters.size() && name.starts_with(letters) &&
                    name[letters.size()] >= '0' && name[letters.size()] <= '9';
    if (is_short) return cat(form, name.substr(letters.size()));
  }
  return std::string(name);
}
// TN_DTYPE_NONE: no type is called so.
inline uint32_t find_dtype(std::string_view name) {
  std::string wanted = long_name(name);
  for (const DtypeName& row : kDtypes) {
    if (row.name == wanted) return row.dtype;
  }
  return TN_DTYPE_NONE;
}
inline uint32_t dtype_of(std::string_view name) {
  if (uint32_t dtype = find_dtype(name); dtype != TN_DTYPE_NONE) return dtype;
  std::vector<std::string> known;
  for (const DtypeName& row : kDtypes)
    known.emplace_back(row.name);
  invalid(cat("dtype: ", expected_one_of(known, name)));
}
inline uint32_t dtype_of(DLDataType type) {
  return uint32_t{type.code} | uint32_t{type.bits} << 8 | uint32_t{type.lanes} << 16;
}
inline DLDataType dl_dtype(uint32_t dtype) {
  return {static_cast<uint8_t>(dtype & 0xff), static_cast<uint8_t>(dtype >> 8 & 0xff),
          static_cast<uint16_t>(dtype >> 16)};
}

inline std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape)
    text += cat(text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

}  // namespace tenon::cxx

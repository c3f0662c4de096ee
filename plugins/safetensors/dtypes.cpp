// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include "tenon/dlpack.h"

namespace tenon::safetensors_plugin {
namespace {

struct Row {
  std::string_view name;
  uint32_t dtype;
};

constexpr Row kRows[] = {
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

}  // namespace

uint32_t dtype_of_name(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return TN_DTYPE_NONE;
}

std::string_view name_of_dtype(uint32_t dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.name;
  return {};
}

}  // namespace tenon::safetensors_plugin

// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

namespace tenon::onnx_plugin {
namespace {

struct Row {
  int32_t onnx;
  uint32_t dtype;
};

constexpr Row kRows[] = {
    {1, TN_F32},
    {2, TN_U8},
    {3, TN_I8},
    {4, TN_U16},
    {5, TN_I16},
    {6, TN_I32},
    {7, TN_I64},
    {9, TN_BOOL},
    {10, TN_F16},
    {11, TN_F64},
    {12, TN_U32},
    {13, TN_U64},
    {14, TN_DTYPE(kDLComplex, 64)},
    {15, TN_DTYPE(kDLComplex, 128)},
    {16, TN_BF16},
    {17, TN_DTYPE(kDLFloat8_e4m3fn, 8)},
    {18, TN_DTYPE(kDLFloat8_e4m3fnuz, 8)},
    {19, TN_DTYPE(kDLFloat8_e5m2, 8)},
    {20, TN_DTYPE(kDLFloat8_e5m2fnuz, 8)},
    {21, TN_U4},
    {22, TN_I4},
    {23, TN_DTYPE(kDLFloat4_e2m1fn, 4)},
    {24, TN_DTYPE(kDLFloat8_e8m0fnu, 8)},
    {25, TN_DTYPE(kDLUInt, 2)},
    {26, TN_DTYPE(kDLInt, 2)},
};

}  // namespace

uint32_t dtype_of_onnx(int32_t onnx_type) {
  for (const Row& row : kRows)
    if (row.onnx == onnx_type) return row.dtype;
  return TN_DTYPE_NONE;
}

int32_t onnx_of_dtype(uint32_t dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return row.onnx;
  return 0;
}

std::string onnx_type_text(int32_t onnx_type) {
  if (onnx_type == 0) return "none";
  if (onnx_type == 8) return "string";
  if (onnx_type == 27) return "float6e2m3";
  if (onnx_type == 28) return "float6e3m2";
  uint32_t dtype = dtype_of_onnx(onnx_type);
  return dtype == TN_DTYPE_NONE ? cat("element type ", onnx_type) : dtype_name(dtype);
}

}  // namespace tenon::onnx_plugin

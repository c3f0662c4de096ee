// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: which element types become another one where nothing but precision can
// be lost. The one place that says it: the fields of data sets (SDK) and the arrays of the command
// (bindings) are converted by it. Pure functions: any thread.

#include <cstdint>

#include "tenon/dlpack.h"

namespace tenon {

constexpr bool is_whole(uint32_t dtype) {
  const uint32_t code = TN_DTYPE_CODE(dtype);
  return code == kDLInt || code == kDLUInt || code == kDLBool;
}

// Any number as float32, float64 or one of the 16-bit types, whole numbers as int32 or int64: if
// these can hold them, which is to be looked at number by number; a type as itself. No types of
// less than a byte.
constexpr bool is_convertible(uint32_t from, uint32_t to) {
  if (from == to) return true;
  const uint32_t code = TN_DTYPE_CODE(from);
  const bool is_number = is_whole(from) || code == kDLFloat || code == kDLBfloat;
  if (TN_DTYPE_BITS(from) < 8 || !is_number) return false;
  const bool is_wide = to == TN_F32 || to == TN_F64 || to == TN_F16 || to == TN_BF16;
  return is_wide || (is_whole(from) && (to == TN_I32 || to == TN_I64));
}

}  // namespace tenon

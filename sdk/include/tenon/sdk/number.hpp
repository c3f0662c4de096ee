// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements of dense CPU tensors as numbers, whatever their type.

#include <algorithm>
#include <vector>

#include "tenon/half.hpp"
#include "tenon/sdk/tensor.hpp"

namespace tenon {

// Calls use(pointer) with the elements as their C++ type; halves come as float, converted.
// False when the type is none of float, bfloat, int, uint, bool of whole bytes.
template <class Use>
bool with_numbers(const DLTensor& t, Use&& use) {
  auto convert = [&](float (*one)(uint16_t)) {
    const uint16_t* from = data_of<const uint16_t>(t);
    std::vector<float> out(static_cast<size_t>(element_count(t)));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = one(from[i]);
    use(static_cast<const float*>(out.data()));
    return true;
  };
#define TN_NUMBER_CASE_(dtype, T) \
  case dtype:                     \
    use(data_of<const T>(t));     \
    return true;
  switch (dtype_of(t)) {
    TN_NUMBER_CASE_(TN_F32, float)
    TN_NUMBER_CASE_(TN_F64, double)
    TN_NUMBER_CASE_(TN_I8, int8_t)
    TN_NUMBER_CASE_(TN_I16, int16_t)
    TN_NUMBER_CASE_(TN_I32, int32_t)
    TN_NUMBER_CASE_(TN_I64, int64_t)
    TN_NUMBER_CASE_(TN_U8, uint8_t)
    TN_NUMBER_CASE_(TN_BOOL, uint8_t)
    TN_NUMBER_CASE_(TN_U16, uint16_t)
    TN_NUMBER_CASE_(TN_U32, uint32_t)
    TN_NUMBER_CASE_(TN_U64, uint64_t)
    case TN_F16:
      return convert(float_of_half);
    case TN_BF16:
      return convert(float_of_bfloat);
    default:
      return false;
  }
#undef TN_NUMBER_CASE_
}

// Where along the first axis the first element that is_bad accepts stands; -1: nowhere.
template <class IsBad>
int64_t first_along_axis_0(const DLTensor& t, IsBad&& is_bad) {
  const int64_t n = element_count(t);
  if (n == 0 || t.ndim == 0) return -1;
  int64_t found = n;
  with_numbers(t, [&](const auto* data) { found = std::find_if(data, data + n, is_bad) - data; });
  return found == n ? -1 : found / (n / t.shape[0]);
}

// A copy as another type, by conversion of each element.
template <class T>
Result<std::vector<T>> numbers_as(const DLTensor& t) {
  std::vector<T> out(static_cast<size_t>(element_count(t)));
  bool known = with_numbers(t, [&](const auto* from) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(from[i]);
  });
  if (!known) return unsupported(cat("expected numbers, got ", dtype_name(dtype_of(t))));
  return out;
}

}  // namespace tenon

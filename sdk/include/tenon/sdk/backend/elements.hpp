// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading and writing single elements of any type as double or as 64-bit integers.

#include "tenon/half.hpp"
#include "tenon/sdk/tensor.hpp"

namespace tenon::backend {

// Number is double or int64_t.
template <class Number>
using Load = Number (*)(const void*, int64_t);
template <class Number>
using Store = void (*)(void*, int64_t, Number);

template <class T, class Number>
Number load_as(const void* data, int64_t i) {
  return static_cast<Number>(static_cast<const T*>(data)[i]);
}
template <class T, class Number>
void store_as(void* data, int64_t i, Number value) {
  static_cast<T*>(data)[i] = static_cast<T>(value);
}

template <class Number>
Load<Number> loader(uint32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return load_as<float, Number>;
    case TN_F64:
      return load_as<double, Number>;
    case TN_F16:
      return load_as<_Float16, Number>;
    case TN_BF16:
      return [](const void* data, int64_t i) {
        return static_cast<Number>(float_of_bfloat(static_cast<const uint16_t*>(data)[i]));
      };
    case TN_BOOL:
    case TN_U8:
      return load_as<uint8_t, Number>;
    case TN_U16:
      return load_as<uint16_t, Number>;
    case TN_U32:
      return load_as<uint32_t, Number>;
    case TN_U64:
      return load_as<uint64_t, Number>;
    case TN_I8:
      return load_as<int8_t, Number>;
    case TN_I16:
      return load_as<int16_t, Number>;
    case TN_I32:
      return load_as<int32_t, Number>;
    case TN_I64:
      return load_as<int64_t, Number>;
    default:
      return nullptr;
  }
}

template <class Number>
Store<Number> storer(uint32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return store_as<float, Number>;
    case TN_F64:
      return store_as<double, Number>;
    case TN_F16:
      return store_as<_Float16, Number>;
    case TN_BF16:
      return [](void* data, int64_t i, Number value) {
        static_cast<uint16_t*>(data)[i] = bfloat_of_float(static_cast<float>(value));
      };
    case TN_BOOL:
      return
          [](void* data, int64_t i, Number value) { static_cast<uint8_t*>(data)[i] = value != 0; };
    case TN_U8:
      return store_as<uint8_t, Number>;
    case TN_U16:
      return store_as<uint16_t, Number>;
    case TN_U32:
      return store_as<uint32_t, Number>;
    case TN_U64:
      return store_as<uint64_t, Number>;
    case TN_I8:
      return store_as<int8_t, Number>;
    case TN_I16:
      return store_as<int16_t, Number>;
    case TN_I32:
      return store_as<int32_t, Number>;
    case TN_I64:
      return store_as<int64_t, Number>;
    default:
      return nullptr;
  }
}

}  // namespace tenon::backend

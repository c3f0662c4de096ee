// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include "tenon/whole.hpp"

#include "dispatch.hpp"

namespace tenon::ops {
namespace {

bool is_packed_integer(uint32_t dtype) {
  return is_integer(dtype) && TN_DTYPE_BITS(dtype) < 8;
}

template <class Number>
Number load_wide(const void* data, uint32_t dtype, int64_t i) {
  Number out{};
  if (dtype == TN_BOOL) return static_cast<Number>(static_cast<const uint8_t*>(data)[i] != 0);
  Status ignored = dispatch<kAll>(dtype, [&]<class T>() -> Status {
    out = static_cast<Number>(static_cast<const T*>(data)[i]);
    return {};
  });
  return out;
}

}  // namespace

bool is_integer(uint32_t dtype) {
  return dtype != TN_DTYPE_NONE &&
         (TN_DTYPE_CODE(dtype) == kDLInt || TN_DTYPE_CODE(dtype) == kDLUInt);
}

bool is_supported(uint32_t dtype) {
  if (minifloat(dtype) || is_packed_integer(dtype)) return true;
  return dispatch<kAll>(dtype, []<class T>() -> Status { return {}; }).ok();
}

double load_number(const void* data, uint32_t dtype, int64_t i) {
  if (const Minifloat* format = minifloat(dtype))
    return number_of(*format, packed_at(data, TN_DTYPE_BITS(dtype), i));
  if (is_packed_integer(dtype)) return static_cast<double>(load_integer(data, dtype, i));
  return load_wide<double>(data, dtype, i);
}

int64_t load_integer(const void* data, uint32_t dtype, int64_t i) {
  if (!is_packed_integer(dtype)) return load_wide<int64_t>(data, dtype, i);
  return packed_integer_at(data, dtype, i);
}

void store_number(void* data, uint32_t dtype, int64_t i, double value, const CastRule& rule) {
  if (const Minifloat* format = minifloat(dtype))
    return put_packed(data, TN_DTYPE_BITS(dtype), i, bits_of(*format, value, rule));
  if (dtype == TN_BOOL) {
    static_cast<bool*>(data)[i] = value != 0;
  } else if (is_integer(dtype)) {
    const bool is_signed = TN_DTYPE_CODE(dtype) == kDLInt;
    store_integer(data, dtype, i, integer_of(value, is_signed, TN_DTYPE_BITS(dtype)));
  } else {
    Status ignored = dispatch<kFloats>(dtype, [&]<class T>() -> Status {
      static_cast<T*>(data)[i] = static_cast<T>(value);
      return {};
    });
  }
}

void store_integer(void* data, uint32_t dtype, int64_t i, int64_t value) {
  if (is_packed_integer(dtype))
    return put_packed(data, TN_DTYPE_BITS(dtype), i, static_cast<uint8_t>(value));
  if (!is_integer(dtype)) return store_number(data, dtype, i, static_cast<double>(value));
  Status ignored = dispatch<kIntegers>(dtype, [&]<class T>() -> Status {
    static_cast<T*>(data)[i] = static_cast<T>(value);
    return {};
  });
}

}  // namespace tenon::ops

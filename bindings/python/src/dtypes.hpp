// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types: DLPack's numbers, and names and types of NumPy and ml_dtypes.

#include <pybind11/numpy.h>

#include "session.hpp"

namespace tenon::python {

// "float32", "bfloat16", ...; "code 4, 24 bits" for others.
std::string dtype_name(uint32_t dtype);
// Throws Failure that lists the names. TN_DTYPE_NONE never comes back.
uint32_t dtype_of(std::string_view name);
inline uint32_t dtype_of(DLDataType type) {
  return uint32_t{type.code} | uint32_t{type.bits} << 8 | uint32_t{type.lanes} << 16;
}
inline DLDataType dl_type(uint32_t dtype) {
  return {static_cast<uint8_t>(dtype & 0xff), static_cast<uint8_t>(dtype >> 8 & 0xff),
          static_cast<uint16_t>(dtype >> 16)};
}
// NumPy's type; from ml_dtypes where NumPy has none. An ImportError names what to install.
py::dtype numpy_dtype(uint32_t dtype);
// TN_DTYPE_NONE: no tensor has such elements.
uint32_t dtype_of(const py::dtype& dtype);
// Several to the byte here, one to the byte in NumPy.
inline bool is_packed(uint32_t dtype) {
  return TN_DTYPE_BITS(dtype) < 8;
}
void pack(const uint8_t* from, uint8_t* to, uint64_t count, uint32_t bits);
// A signed type gets its sign over the whole byte, as ml_dtypes keeps it.
void unpack(const uint8_t* from, uint8_t* to, uint64_t count, uint32_t bits, bool is_signed);

}  // namespace tenon::python

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types as NumPy and ml_dtypes have them.

#include <pybind11/numpy.h>

#include "tenon/cxx/element_type.hpp"

#include "session.hpp"

namespace tenon::python {

using cxx::dl_dtype, cxx::dtype_name, cxx::dtype_of, cxx::shape_text;

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

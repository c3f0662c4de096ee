// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include <cstring>
#include <map>

namespace tenon::python {
namespace {

bool numpy_has(uint32_t dtype) {
  uint32_t code = TN_DTYPE_CODE(dtype);
  bool is_common = code == kDLFloat || code == kDLInt || code == kDLUInt || code == kDLBool ||
                   code == kDLComplex;
  return is_common && !is_packed(dtype);
}

}  // namespace

py::dtype numpy_dtype(uint32_t dtype) {
  // Looking a name up in ml_dtypes takes longer than a small plan runs. The map is never freed: it
  // may go after the interpreter. The GIL guards it.
  static auto& made = *new std::map<uint32_t, py::dtype>;
  if (auto found = made.find(dtype); found != made.end()) return found->second;
  std::string name = dtype_name(dtype);
  if (cxx::find_dtype(name) == TN_DTYPE_NONE)
    throw Error(TN_UNIMPLEMENTED, cat("expected a type that NumPy or ml_dtypes has, got ", name));
  py::dtype type = numpy_has(dtype)
                       ? py::dtype(name)
                       : py::dtype::from_args(py::module_::import("ml_dtypes").attr(name.c_str()));
  return made.emplace(dtype, std::move(type)).first->second;
}

uint32_t dtype_of(const py::dtype& dtype) {
  static auto& known = *new std::map<int, uint32_t>;  // by NumPy's number of the type
  int number = dtype.num();
  if (auto found = known.find(number); found != known.end()) return found->second;
  std::string name = py::str(dtype.attr("name"));
  return known[number] = cxx::find_dtype(name);
}

void pack(const uint8_t* from, uint8_t* to, uint64_t count, uint32_t bits) {
  uint64_t per_byte = 8 / bits;
  auto mask = static_cast<uint8_t>((1u << bits) - 1);
  std::memset(to, 0, (count + per_byte - 1) / per_byte);
  for (uint64_t i = 0; i < count; ++i)
    to[i / per_byte] |= static_cast<uint8_t>((from[i] & mask) << (i % per_byte * bits));
}

void unpack(const uint8_t* from, uint8_t* to, uint64_t count, uint32_t bits, bool is_signed) {
  uint64_t per_byte = 8 / bits;
  auto mask = static_cast<uint8_t>((1u << bits) - 1);
  auto sign = static_cast<uint8_t>(is_signed ? 1u << (bits - 1) : 0);
  for (uint64_t i = 0; i < count; ++i) {
    auto value = static_cast<uint8_t>(from[i / per_byte] >> (i % per_byte * bits) & mask);
    to[i] = static_cast<uint8_t>((value ^ sign) - sign);
  }
}

}  // namespace tenon::python

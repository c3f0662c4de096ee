// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include <cstring>
#include <map>

namespace tenon::python {
namespace {

struct Row {
  uint32_t dtype;
  std::string_view name;
  bool in_numpy;
};
constexpr Row kRows[] = {
    {TN_F32, "float32", true},
    {TN_F64, "float64", true},
    {TN_F16, "float16", true},
    {TN_BF16, "bfloat16", false},
    {TN_BOOL, "bool", true},
    {TN_I8, "int8", true},
    {TN_I16, "int16", true},
    {TN_I32, "int32", true},
    {TN_I64, "int64", true},
    {TN_U8, "uint8", true},
    {TN_U16, "uint16", true},
    {TN_U32, "uint32", true},
    {TN_U64, "uint64", true},
    {TN_DTYPE(kDLComplex, 64), "complex64", true},
    {TN_DTYPE(kDLComplex, 128), "complex128", true},
    {TN_I4, "int4", false},
    {TN_U4, "uint4", false},
    {TN_DTYPE(kDLInt, 2), "int2", false},
    {TN_DTYPE(kDLUInt, 2), "uint2", false},
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), "float8_e4m3fn", false},
    {TN_DTYPE(kDLFloat8_e4m3fnuz, 8), "float8_e4m3fnuz", false},
    {TN_DTYPE(kDLFloat8_e5m2, 8), "float8_e5m2", false},
    {TN_DTYPE(kDLFloat8_e5m2fnuz, 8), "float8_e5m2fnuz", false},
    {TN_DTYPE(kDLFloat8_e8m0fnu, 8), "float8_e8m0fnu", false},
    {TN_DTYPE(kDLFloat4_e2m1fn, 4), "float4_e2m1fn", false},
};

}  // namespace

std::string dtype_name(uint32_t dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return std::string(row.name);
  }
  if (dtype == TN_DTYPE_NONE) return "unknown";
  return cat("code ", TN_DTYPE_CODE(dtype), ", ", TN_DTYPE_BITS(dtype), " bits");
}

uint32_t dtype_of(std::string_view name) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
    known += cat(known.empty() ? "" : ", ", row.name);
  }
  invalid(cat("dtype: expected one of ", known, ", got '", name, "'"));
}

py::dtype numpy_dtype(uint32_t dtype) {
  // Looking a name up in ml_dtypes takes longer than a small plan runs. The map is never freed: it
  // may go after the interpreter. The GIL guards it.
  static auto& made = *new std::map<uint32_t, py::dtype>;
  if (auto found = made.find(dtype); found != made.end()) return found->second;
  for (const Row& row : kRows) {
    if (row.dtype != dtype) continue;
    py::dtype type =
        row.in_numpy ? py::dtype(std::string(row.name))
                     : py::dtype::from_args(
                           py::module_::import("ml_dtypes").attr(std::string(row.name).c_str()));
    return made.emplace(dtype, std::move(type)).first->second;
  }
  throw Failure(TN_UNIMPLEMENTED, "python",
                cat("expected a type that NumPy or ml_dtypes has, got ", dtype_name(dtype)));
}

uint32_t dtype_of(const py::dtype& dtype) {
  static auto& known = *new std::map<int, uint32_t>;  // by NumPy's number of the type
  int number = dtype.num();
  if (auto found = known.find(number); found != known.end()) return found->second;
  std::string name = py::str(dtype.attr("name"));
  uint32_t result = TN_DTYPE_NONE;
  for (const Row& row : kRows) {
    if (row.name == name) result = row.dtype;
  }
  known[number] = result;
  return result;
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

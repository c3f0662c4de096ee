// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single elements of every type as double or int64, the narrow ones (8, 4 and 2 bits, packed or
// not) included. For Cast and quantization, where any type meets any other.

#include <cstdint>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

// A float of at most 8 bits. The rows of the table are the ones that ONNX has.
struct Minifloat {
  uint32_t dtype;
  int exponent_bits, mantissa_bits, bias;
  bool is_signed;
  bool has_inf;   // all ones with mantissa 0; NaN is all ones with the rest
  bool only_nan;  // fn: all ones is the only NaN; with `zero_nan` it is -0
  bool zero_nan;  // fnuz: no -0, whose bits are NaN
};
const Minifloat* minifloat(uint32_t dtype);  // NULL: not one
double decode(const Minifloat& format, uint8_t bits);

enum class RoundTo { kNearest, kUp, kDown };
struct CastRule {
  bool saturate = true;
  RoundTo round = RoundTo::kNearest;  // of float8_e8m0fnu
};
uint8_t encode(const Minifloat& format, double value, const CastRule& rule);

bool is_integer(uint32_t dtype);   // bool is not
double lowest_of(uint32_t dtype);  // of an integer type
double highest_of(uint32_t dtype);

// Element i of dense memory. Packed types are written without touching their neighbours: one
// thread per byte.
double load_number(const void* data, uint32_t dtype, int64_t i);
int64_t load_integer(const void* data, uint32_t dtype, int64_t i);
void store_number(void* data, uint32_t dtype, int64_t i, double value, const CastRule& rule = {});
void store_integer(void* data, uint32_t dtype, int64_t i, int64_t value);
bool is_supported(uint32_t dtype);

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single elements of every type as double or int64, the narrow ones (8, 4 and 2 bits, packed or
// not) included. For Cast and quantization, where any type meets any other.

#include <cstdint>

#include "tenon/narrow.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

bool is_integer(uint32_t dtype);  // bool is not

// Element i of dense memory. Packed types are written without touching their neighbours: one
// thread per byte.
double load_number(const void* data, uint32_t dtype, int64_t i);
int64_t load_integer(const void* data, uint32_t dtype, int64_t i);
void store_number(void* data, uint32_t dtype, int64_t i, double value, const CastRule& rule = {});
void store_integer(void* data, uint32_t dtype, int64_t i, int64_t value);
bool is_supported(uint32_t dtype);

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each TN_EXPR_* is in registers. Adding one is a row in intrinsics.cpp.

#include <cstdint>
#include <optional>

#include "vector_code.h"

namespace tenon::onednn::kernels::code {

// The result of one node from its operands; unused ones are empty.
using Intrinsic = Value (*)(VectorCode&, Value a, Value b, Value c);

// kBf16: what is computed is only stored in bf16, so a relative error of 2^-18 in EXP and an
// absolute one of 2^-21 in ERF do not show.
enum class Precision : uint8_t { kF32, kBf16 };

// nullptr: no code for it.
Intrinsic intrinsic(uint32_t op, Precision precision);

// How TN_EXPR_EQ to TN_EXPR_GE compare: a choice on one needs no 1 and 0 first.
std::optional<Compare> comparison(uint32_t op);

// a to a whole power from 2 to 8, by multiplying.
Value whole_power(VectorCode& c, Value a, int power);

}  // namespace tenon::onednn::kernels::code

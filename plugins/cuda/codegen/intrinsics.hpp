// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar functions of abi/expr.md as text of CUDA C++.

#include <cstdint>
#include <span>

namespace tenon::cuda {

// $a $b $c stand for operands, $n for the width of the integers. NULL: not in that domain.
struct Intrinsic {
  uint32_t op;  // TN_EXPR_*
  const char* floating;
  const char* integer;
};

std::span<const Intrinsic> intrinsics();
// NULL: a number that this backend does not know.
const Intrinsic* find_intrinsic(uint32_t op);

}  // namespace tenon::cuda

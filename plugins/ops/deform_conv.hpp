// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel and the composition of DeformConv share.

#include "tenon/sdk/role/op.hpp"

#include "window.hpp"

namespace tenon::ops::deform {

enum Input : uint64_t { kX, kW, kOffset, kB, kMask };

Result<std::vector<Value>> decomposed(EditView edit, Node node);

}  // namespace tenon::ops::deform

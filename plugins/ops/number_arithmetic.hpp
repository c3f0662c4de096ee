// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contents of small integer tensors that are computed from shapes ("past + seq", "heads * 64"). The
// host infers the types of pointwise operators; this notes the numbers.

#include "dims.hpp"

namespace tenon::ops {

Status add_numbers(EditView edit, Node node);
Status subtract_numbers(EditView edit, Node node);
Status multiply_numbers(EditView edit, Node node);
Status divide_numbers(EditView edit, Node node);

}  // namespace tenon::ops

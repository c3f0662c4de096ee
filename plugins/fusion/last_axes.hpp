// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the rules of normalizations ask about: means over the last axes and weights of their shape.

#include "rewriter.hpp"

namespace tenon::fusion {

// The first of the last axes that a kept mean goes over; -1 where it goes over others.
int64_t first_axis(Node mean);
// Of the type's elements, and with the axes from `axis` on as its shape.
bool has_normed_shape(Value value, const Type& type, int64_t axis);

}  // namespace tenon::fusion

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attributes of one integer for each axis, which may be left out.

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

using Ints = std::vector<int64_t>;

inline Ints ints_or(Node node, std::string_view name, size_t n, int64_t fallback) {
  Ints out = node.attr_ints(name);
  return out.empty() ? Ints(n, fallback) : out;
}

}  // namespace tenon::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once
// One row of the table of operators that this backend runs. `refuse` says why a node cannot be
// taken (empty: it can); it is asked while claiming and sees the same graph as `lower`, so what it
// lets through must compile. Lowering knows the form of a row; the table itself is
// implementations/handlers.cpp.

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace tenon::onednn {

class Lowering;

// What a row takes beside tensors of f32, 8-bit and plain integers that are not empty.
enum Takes : uint8_t {
  kUsual = 0,
  kAnyType = 1,        // half and double precision, unsigned and 16-bit integers
  kEmpty = 2,          // tensors without elements beside some that have them
  kNarrow = 4,         // 8-bit floating point, and what is packed: 4 and 2 bits
  kOptionalFirst = 8,  // the first input may be absent
  kWidened = 16        // half precision by f32 and casts (rewrites/widen_halves)
};

// Each sample's result is of that sample alone, and comes first to last as the samples do along the
// first axis: a batch may be cut (rewrites/batch_parts).
constexpr bool kSamplesApart = true;

struct Handler {
  std::string_view op;
  std::string (*refuse)(const Graph&, const Node&);
  void (*lower)(Lowering&, int node);
  uint8_t takes = kUsual;
  bool keeps_samples_apart = false;
};

// Pointwise operators, and others without a row of their own, share one.
const Handler& find_handler(std::string_view op);

}  // namespace tenon::onednn

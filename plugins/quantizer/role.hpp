// SPDX-License-Identifier: Apache-2.0
#pragma once
// The quantization role of a node: the column `quant` of its operator's row (tenon/role/op.h),
// with what depends on attributes worked out.

#include <string>
#include <utility>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

enum class Kind { kFloat, kCompute, kSameScale, kTable, kRequant };

struct Role {
  Kind kind = Kind::kFloat;
  int64_t act = 0, weight = 1, bias = -1;           // inputs of kCompute; bias -1: has none
  int64_t axis = 0;                                 // the weight's output channel
  int64_t rows = -1;                                // a table whose rows are looked up; -1: none
  std::vector<std::pair<int64_t, int64_t>> stored;  // of a float node: weights, with their channel
  bool pointwise = false;
  bool has_row = false;
};

Role role_of(Node node);

}  // namespace tenon::quantizer

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Putting nodes behind a value that others read already.

#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::precision {

struct Use {
  Node node;
  uint64_t input;
};

inline std::vector<Use> uses_of(Value value) {
  std::vector<Use> out;
  for (uint64_t i = 0, n = value.consumer_count(); i < n; ++i) {
    uint64_t input = 0;
    Node node = value.consumer(i, &input);
    out.push_back({node, input});
  }
  return out;
}

// Whoever reads `from`, outputs and states of the graph included, reads `to`; `stay` go on as
// before.
inline Status redirect(EditView edit, Value from, Value to, const std::vector<Use>& stay) {
  TN_CHECK(edit.replace(from, to));
  for (const Use& use : stay)
    TN_CHECK(edit.set_input(use.node, use.input, from));
  return {};
}

}  // namespace tenon::precision

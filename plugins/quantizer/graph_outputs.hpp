// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph gives out is read by no node: whoever puts something behind a value moves both.

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// The outputs of the graph that are `from` become `to`, under the names that they have.
inline Status give_out(EditView edit, Value from, Value to) {
  const std::vector<Value> outputs = edit.graph().outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] == from) TN_CHECK(Status(services.edit->set_output(edit.raw, i, to.id)));
  return {};
}

}  // namespace tenon::quantizer

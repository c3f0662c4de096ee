// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node once more, with other values for some of its inputs.

#include <map>
#include <string_view>

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

// Its attributes, operator and scope are the node's, its name ends in `what`.
Result<Node> repeated(EditView edit,
                      Node node,
                      const std::map<uint64_t, Value>& inputs,
                      std::string_view what);

// The same with all inputs given, which may be those of another graph.
Result<Node> added_again(EditView edit,
                         Node node,
                         std::vector<Value> inputs,
                         std::string_view name = {});

}  // namespace tenon::quantizer

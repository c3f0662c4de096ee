// SPDX-License-Identifier: Apache-2.0
#pragma once
// Squared norms of each example's gradient as rows say them: by their column example_norms, and of
// pointwise nodes by the gradient, which has an entry for each example before it is summed.

#include <map>
#include <string>
#include <vector>

#include "examples.hpp"
#include "interface.hpp"

namespace tenon::autodiff {

using Squares = std::map<tn_value_id, Value>;        // by parameter: [examples]
using Reasons = std::map<std::string, std::string>;  // by parameter: why its row was not asked

// One node that reads parameters, which nothing else does.
struct Reader {
  Node node;
  std::vector<uint8_t> wanted;  // by input
};

// parameters: by the value that the node reads of each. A row that cannot say it leaves its reason.
Result<Squares> by_rules(const EditView& edit,
                         const Examples& examples,
                         const std::map<tn_node_id, Reader>& readers,
                         const std::map<tn_value_id, Named>& parameters,
                         const Cotangents& cotangents,
                         Reasons* reasons);

// Over all axes but the first: [examples, ...] to [examples].
Value sum_of_squares(Builder& b, Value x);

}  // namespace tenon::autodiff

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of loops that are known before they run: for the shapes of what a Loop stacks, and for
// its gradient.

#include <algorithm>
#include <optional>

#include "tenon/sdk/match.hpp"

namespace tenon {

// How many steps a Loop makes, where that is known before it runs: its count is a constant, and so
// is whether it goes on.
inline std::optional<int64_t> known_steps(Node loop, Graph body) {
  Value before = loop.input(1), goes_on = body.outputs()[0];
  while (Node same = made_by(goes_on, "Identity"))
    goes_on = same.input(0);
  const std::vector<Value> inputs = body.inputs();
  const bool is_handed_on = inputs.size() > 1 && goes_on.id == inputs[1].id;
  const std::optional<double> count = scalar_of(loop.input(0));
  const std::optional<double> begins = before ? scalar_of(before) : 1;
  const std::optional<double> stays = is_handed_on ? begins : scalar_of(goes_on);
  if (!count || *count > 0x1p53 || !begins || !stays) return std::nullopt;
  const int64_t most = *begins == 0 ? 0 : *stays == 0 ? 1 : INT64_MAX;
  return std::clamp<int64_t>(static_cast<int64_t>(*count), 0, most);
}

}  // namespace tenon

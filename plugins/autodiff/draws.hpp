// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes that draw random numbers without a stated seed do so by their name, which a copy changes.

#include <optional>

#include <nlohmann/json.hpp>

#include "tenon/sdk/draws.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::autodiff {

// The attribute with which a copy of a node called `name` draws what that one draws; nothing where
// it has a seed already, or takes none.
inline std::optional<Attr> seed_to_repeat(Node node, std::string_view name) {
  const tn_op* row = node.row();
  if (!row || !(row->traits & TN_OP_RANDOM) || node.attr("seed").tag != TN_ANY_NONE)
    return std::nullopt;
  nlohmann::json declared = nlohmann::json::parse(view(row->attributes), nullptr, false);
  for (const nlohmann::json& attribute : declared)
    if (attribute["name"] == "seed") {
      double seed = seed_of_name(name);
      if (attribute["type"] == "int") return Attr("seed", static_cast<int64_t>(seed));
      return Attr("seed", seed);
    }
  return std::nullopt;
}

}  // namespace tenon::autodiff

// SPDX-License-Identifier: Apache-2.0
#include "kept.hpp"

#include <nlohmann/json.hpp>

#include "tenon/sdk/original.hpp"

namespace tenon::pruner {

std::string kept_after(const Removal& removal, Graph graph) {
  nlohmann::json note = nlohmann::json::parse(kept_note(graph), nullptr, false);
  if (!note.is_object()) note = nlohmann::json::object();
  for (Value constant : graph.constants()) {
    for (size_t axis = 0, rank = constant.type().rank(); axis < rank; ++axis) {
      const std::vector<int64_t>* left = removal.kept(constant, axis);
      if (!left) continue;
      nlohmann::json& entries = note[std::string(constant.name())][std::to_string(axis)];
      std::vector<int64_t> now = *left;
      for (int64_t& entry : now)
        if (entries.is_array()) entry = entries[static_cast<size_t>(entry)].get<int64_t>();
      entries = now;
    }
  }
  return note.dump();
}

}  // namespace tenon::pruner

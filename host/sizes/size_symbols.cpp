// SPDX-License-Identifier: Apache-2.0
#include "sizes/size_symbols.hpp"

#include <algorithm>
#include <unordered_set>

namespace tenon::host {

SizeSymbols::SizeSymbols(const tn_graph& graph) {
  const Tables& tables = *graph.tables;
  std::unordered_set<tn_value_id> states;
  for (auto [input, output] : tables.states)
    states.insert(input);
  size_t given = 0;
  for (tn_value_id id : tables.inputs) {
    if (states.contains(id)) continue;
    const Type& type = *tables.values.find(id)->type;
    for (size_t axis = 0; type.kind == TN_KIND_TENSOR && axis < type.dims.size(); ++axis) {
      const std::string symbol(type.symbol(axis));
      if (symbol.empty()) continue;
      const Size here{given, axis};
      auto same = std::ranges::find(names_, symbol, &Name::text);
      if (same != names_.end())
        same->others.push_back(here);
      else if (symbol.find_first_of("+-*/()") == symbol.npos)
        names_.push_back({symbol, here, {}});
      else
        expressions_.emplace_back(symbol, here);
    }
    ++given;
  }
}

bool SizeSymbols::agree(std::span<const DLTensor* const> inputs) const {
  for (const Name& name : names_)
    for (const Size& other : name.others)
      if (other.of(inputs) != name.first.of(inputs)) return false;
  auto value = [&](std::string_view text) -> std::optional<int64_t> {
    auto found = std::ranges::find(names_, text, &Name::text);
    if (found == names_.end()) return {};
    return found->first.of(inputs);
  };
  return std::ranges::all_of(expressions_, [&](const auto& one) {
    return evaluate_symbol(one.first, value).value_or(one.second.of(inputs)) ==
           one.second.of(inputs);
  });
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
// Which operator a name that no row has may mean.
#include "graph/op_table.hpp"
#include "services/status.hpp"

namespace tenon::host {

// One letter of the type counts more than another domain.
std::string OpTable::hint(std::string_view name) const {
  std::shared_lock lock(mutex_);
  const std::string_view type = name.substr(name.rfind('.') + 1);
  const std::string_view front = name.substr(0, name.size() - type.size());
  std::map<size_t, std::string> found;  // the first by distance
  for (const auto& [key, row] : rows_) {
    const auto& [domain, other, version] = key;
    const std::string own = cat(domain, domain.empty() ? "" : ".");
    const size_t letters = edit_distance(type, other);
    if (letters <= type.size() / 2)
      found.try_emplace(2 * letters + (own == front ? 0 : 1), cat(own, other));
  }
  return found.empty() ? "" : cat(" (did you mean '", found.begin()->second, "'?)");
}

}  // namespace tenon::host

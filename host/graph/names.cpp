// SPDX-License-Identifier: Apache-2.0
#include "graph/names.hpp"

#include <utility>

namespace tenon::host {

size_t NameIndex::place_of(std::string_view name) const {
  if (entries_.empty()) return 0;
  const size_t hash = hash_of(name);
  size_t at = hash & (entries_.size() - 1);
  while (entries_[at].name && (entries_[at].hash != hash || *entries_[at].name != name))
    at = next(at);
  return at;
}

void NameIndex::grow() {
  std::vector<Entry> before = std::exchange(entries_, {});
  entries_.resize(before.empty() ? 16 : 2 * before.size());
  for (Entry& entry : before)
    if (entry.name) {
      size_t at = entry.hash & (entries_.size() - 1);
      while (entries_[at].name)
        at = next(at);
      entries_[at] = std::move(entry);
    }
}

void NameIndex::set(Text name, uint64_t id) {
  if (2 * (n_ + 1) > entries_.size()) grow();
  Entry& entry = entries_[place_of(*name)];
  if (!entry.name) ++n_;
  entry = {hash_of(*name), std::move(name), id};
}

// What stands behind it in a row moves up, where it would not be found across the gap.
void NameIndex::erase(std::string_view name) {
  size_t gap = place_of(name);
  if (gap >= entries_.size() || !entries_[gap].name) return;
  --n_;
  for (size_t at = next(gap); entries_[at].name; at = next(at)) {
    const size_t home = entries_[at].hash & (entries_.size() - 1);
    const size_t mask = entries_.size() - 1;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    entries_[gap] = std::move(entries_[at]);
    gap = at;
  }
  entries_[gap] = {};
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ids by name. One block of memory, so that the copy that each edit begins with is a walk along it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::host {

using Text = std::shared_ptr<const std::string>;
inline Text make_text(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

class NameIndex {
 public:
  uint64_t find(std::string_view name) const {  // 0: there is none
    const size_t at = place_of(name);
    return at < entries_.size() ? entries_[at].id : 0;
  }
  bool contains(std::string_view name) const { return find(name) != 0; }
  // In place of what has the name. No id is 0.
  void set(Text name, uint64_t id);
  void erase(std::string_view name);

 private:
  struct Entry {
    size_t hash = 0;
    Text name;  // none: the place is free
    uint64_t id = 0;
  };
  static size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }
  size_t next(size_t at) const { return (at + 1) & (entries_.size() - 1); }
  // Where it is, or the free place where it would be; no place at all where there are none.
  size_t place_of(std::string_view name) const;
  void grow();

  std::vector<Entry> entries_;  // a power of two, at most half of them taken; probed in a row
  size_t n_ = 0;
};

}  // namespace tenon::host

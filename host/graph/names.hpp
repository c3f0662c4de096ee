// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ids by name.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tsl/robin_map.h>

namespace tenon::host {

using Text = std::shared_ptr<const std::string>;
inline Text make_text(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  size_t operator()(const Text& text) const { return (*this)(std::string_view(*text)); }
};
struct TextEqual {
  using is_transparent = void;
  bool operator()(const Text& a, const Text& b) const { return *a == *b; }
  bool operator()(std::string_view a, const Text& b) const { return a == *b; }
  bool operator()(const Text& a, std::string_view b) const { return *a == b; }
};

// One block of memory with the hashes in it, because each edit begins with a copy.
using NameIndex = tsl::robin_map<Text,
                                 uint64_t,
                                 TextHash,
                                 TextEqual,
                                 std::allocator<std::pair<Text, uint64_t>>,
                                 /*StoreHash=*/true>;

// 0: nobody has the name.
inline uint64_t id_of(const NameIndex& names, std::string_view name) {
  const auto found = names.find(name);
  return found == names.end() ? 0 : found->second;
}

}  // namespace tenon::host

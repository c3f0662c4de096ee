// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a plugin keeps what it can make again: by the XDG rules, or empty where there is no place.

#include <cstdlib>
#include <string>

#include "tenon/sdk/status.hpp"

namespace tenon {
inline std::string user_cache_folder(std::string_view plugin) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return cat(cache, "/tenon/", plugin);
  return home && *home ? cat(home, "/.cache/tenon/", plugin) : "";
}
}  // namespace tenon

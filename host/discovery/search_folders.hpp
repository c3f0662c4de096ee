// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where plugins are looked for.

#include <filesystem>
#include <string>
#include <vector>

#include "services/session.hpp"

namespace tenon::host {

struct SearchFolder {
  std::filesystem::path folder;
  std::string source;   // who names it: "config", "TENON_PLUGIN_PATH", ...
  std::string ignored;  // why it is not searched; empty: it is
};

// In order of preference. Environment and user folders are ignored in a privileged process, and all
// but the folder beside libtenon in safe mode (config, or TENON_SAFE_MODE=1).
std::vector<SearchFolder> search_folders(const RegistryConfig& config);

// Its plugin files, sorted, as folder order is random. `why_not` is set when it cannot be read.
std::vector<std::filesystem::path> plugin_files(const SearchFolder& searched, std::string& why_not);

// Where the user's processes keep what the next one should know; empty when there is none.
std::filesystem::path state_folder();

}  // namespace tenon::host

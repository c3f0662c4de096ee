// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where plugins are looked for, and the marks that tell which one ended a process while loading.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tenon::host {

struct RegistryConfig {
  std::vector<std::string> plugin_path;
  bool safe_mode = false;  // only the folder beside libtenon
  bool drafts = false;     // components marked as drafts may be created
};

struct Place {
  std::filesystem::path folder;
  std::string source;   // who names it: "config", "TENON_PLUGIN_PATH", ...
  std::string ignored;  // why it is not searched; empty: it is
};

// In order of preference. Environment and user folders are ignored in a privileged process, and all
// but the folder beside libtenon in safe mode (config, or TENON_SAFE_MODE=1).
std::vector<Place> search_places(const RegistryConfig& config);

// Its plugin files, sorted, as folder order is random. `why_not` is set when it cannot be read.
std::vector<std::filesystem::path> plugin_files(const Place& place, std::string& why_not);

// A small locked file that exists while a plugin is being loaded. The lock goes with the process:
// a mark that is left without a lock says that the load never finished.
class LoadingMark {
 public:
  explicit LoadingMark(const std::filesystem::path& plugin);
  ~LoadingMark();
  LoadingMark(const LoadingMark&) = delete;
  LoadingMark& operator=(const LoadingMark&) = delete;

  // The mark of an earlier load of this very file (same path, size and time) that ended the
  // process, or empty.
  static std::filesystem::path left_behind(const std::filesystem::path& plugin);

 private:
  std::filesystem::path file_;
  int fd_ = -1;
};

}  // namespace tenon::host

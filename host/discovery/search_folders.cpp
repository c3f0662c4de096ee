// SPDX-License-Identifier: Apache-2.0
#include "discovery/search_folders.hpp"

#include <algorithm>
#include <cstdlib>
#include <ranges>
#include <string_view>

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace tenon::host {
namespace fs = std::filesystem;
namespace {

bool privileged() {
  return getauxval(AT_SECURE) != 0 || geteuid() != getuid();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// $XDG_x_HOME, or its default below the home folder; empty when there is neither.
fs::path user_folder(const char* xdg, std::string_view below_home) {
  fs::path given = variable(xdg);
  if (given.is_absolute()) return given / "tenon";  // the XDG specification ignores relative ones
  fs::path home = variable("HOME");
  return home.is_absolute() ? home / below_home / "tenon" : fs::path();
}

// Beside libtenon; in a program that carries the host in itself, in ../lib as our builds lay it
// out.
fs::path builtin_folder() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&builtin_folder), &here) || !here.dli_fname) return {};
  std::error_code failed;
  fs::path file = fs::canonical(here.dli_fname, failed);
  if (failed) file = fs::canonical("/proc/self/exe", failed);
  if (failed) return {};
  fs::path beside = file.parent_path() / "tenon" / "plugins";
  if (fs::is_directory(beside, failed)) return beside;
  fs::path in_lib = file.parent_path().parent_path() / "lib" / "tenon" / "plugins";
  return fs::is_directory(in_lib, failed) ? in_lib : beside;
}

}  // namespace

fs::path state_folder() {
  return privileged() ? fs::path() : user_folder("XDG_STATE_HOME", ".local/state");
}

std::vector<SearchFolder> search_folders(const RegistryConfig& config) {
  std::vector<SearchFolder> folders;
  std::string safe = variable("TENON_SAFE_MODE");
  std::string ignored =
      config.safe_mode || (!safe.empty() && safe != "0") ? "safe mode: built-in plugins only" : "";
  auto add = [&folders](fs::path folder, std::string source, std::string why) {
    if (!folder.empty())
      folders.push_back({fs::absolute(folder), std::move(source), std::move(why)});
  };
  for (const std::string& folder : config.plugin_path)
    add(folder, "config", ignored);
  if (ignored.empty() && privileged()) ignored = "the process is privileged";
  const std::string paths = variable("TENON_PLUGIN_PATH");
  for (auto path : std::views::split(paths, ':'))
    add(fs::path(path.begin(), path.end()), "TENON_PLUGIN_PATH", ignored);
  fs::path user = user_folder("XDG_DATA_HOME", ".local/share");
  if (!user.empty()) add(user / "plugins", "user", ignored);
  add(builtin_folder(), "built-in", "");
  return folders;
}

std::vector<fs::path> plugin_files(const SearchFolder& searched, std::string& why_not) {
  std::vector<fs::path> files;
  std::error_code failed;
  fs::directory_iterator at(searched.folder, failed);
  if (failed) why_not = failed.message();
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::error_code unreadable;
    if (at->path().extension() == ".so" && at->is_regular_file(unreadable))
      files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tenon::host

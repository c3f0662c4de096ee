// SPDX-License-Identifier: Apache-2.0
// What belongs to the process and not to a plugin: the folder, the environment, the locale, the
// mask of new files, open files, threads and signal handlers.
#include "surroundings.hpp"

#include <clocale>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

extern char** environ;  // NOLINT: POSIX has it so

namespace tenon::command::check {
namespace {

namespace fs = std::filesystem;

constexpr int kStandardFiles = 3;  // input, output, errors

size_t entries_in(const char* folder) {
  std::error_code ignored;
  fs::directory_iterator all(folder, ignored);
  return static_cast<size_t>(std::distance(fs::begin(all), fs::end(all)));
}

}  // namespace

Surroundings Surroundings::now() {
  Surroundings out;
  std::error_code ignored;
  out.folder = fs::current_path(ignored).string();
  for (char** entry = environ; entry && *entry; ++entry)
    out.environment.insert(*entry);
  for (int file = 0; file < kStandardFiles; ++file)
    if (fcntl(file, F_GETFD) != -1) out.files.insert(file);
  out.n_threads = entries_in("/proc/self/task");
  for (int number = 1; number < 32; ++number) {
    struct sigaction action{};
    bool is_read = sigaction(number, nullptr, &action) == 0;
    out.handlers.push_back(is_read ? reinterpret_cast<void*>(action.sa_handler) : nullptr);
  }
  out.locale = std::setlocale(LC_ALL, nullptr);
  out.mask = umask(0);
  umask(out.mask);
  return out;
}

std::string Surroundings::change(const Surroundings& after, const std::string& library) const {
  if (after.folder != folder)
    return cat("expected the folder to stay ", folder, ", got ", after.folder);
  if (after.environment != environment) return "expected the environment to stay, it was changed";
  for (int file : files)
    if (!after.files.count(file))
      return cat("expected file ", file, " to stay open, it was closed");
  if (after.locale != locale)
    return cat("expected the locale to stay ", locale, ", got ", after.locale);
  if (after.mask != mask) return "expected the mask of new files (umask) to stay, it was changed";
  if (after.n_threads > n_threads)
    return cat("expected ", n_threads, " threads, got ", after.n_threads);
  for (size_t i = 0; i < handlers.size(); ++i) {
    void* is = after.handlers[i];
    if (is == handlers[i]) continue;
    Dl_info info{};
    bool is_ours = is != reinterpret_cast<void*>(SIG_IGN) &&
                   is != reinterpret_cast<void*>(SIG_DFL) && dladdr(is, &info) && info.dli_fname &&
                   !fs::equivalent(info.dli_fname, library);
    if (!is_ours)
      return cat("expected the handler of signal ", i + 1, " (", strsignal(static_cast<int>(i) + 1),
                 ") to stay, it was replaced");
  }
  return "";
}

}  // namespace tenon::command::check

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which plugins ended a process while they were loaded, by a fault of their own: SIGSEGV, SIGBUS,
// SIGILL or SIGABRT, raised by the thread that loads. A signal handler writes it down in the moment
// of the crash, so that a process that is killed at any other moment leaves nothing behind.

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "services/rooms.hpp"

namespace tenon::host {

// What is written down about one state of one file (path, size and time: another build of the
// plugin starts anew).
LoadCrashes crashes_of(const std::filesystem::path& plugin);
void forget(const LoadCrashes& crashes);

// While it lives, crashes of its thread are written down as those of the plugin. Guards nest: a
// plugin may load another one, and the innermost is to blame.
class LoadGuard {
 public:
  explicit LoadGuard(const std::filesystem::path& plugin);
  ~LoadGuard();  // what was written down is taken back: the process lives, somebody caught it
  LoadGuard(const LoadGuard&) = delete;
  LoadGuard& operator=(const LoadGuard&) = delete;

 private:
  static void on_fault(int number, siginfo_t* info, void* context);
  void write_down(const char* line);
  void lend_stack();

  std::vector<std::string> folders_;  // to be made, outermost first
  std::string record_;
  std::unique_ptr<char[]> stack_;  // to handle the overflow of the thread's own
  LoadGuard* outer_;
  pid_t process_;  // a child that the plugin forks is not the process that loads
  long written_at_ = -1;
};

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where sessions of a fuzzer keep what they keep for a user: a folder that ends with the process
// that made it, however its children end and also when it is stopped by a signal.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace tenon::fuzz {

class StateFolder {
 public:
  StateFolder() : owner_(getpid()) {
    // A signal between the folder's making and its handler's would leave the folder behind.
    constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t stops, before;
    sigemptyset(&stops);
    for (int signal : kStops)
      sigaddset(&stops, signal);
    sigprocmask(SIG_BLOCK, &stops, &before);
    std::string name = (std::filesystem::temp_directory_path() / "tenon_fuzz_XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
    setenv("XDG_STATE_HOME", name.c_str(), 1);
    of_process() = this;
    for (int signal : kStops)
      std::signal(signal, stop);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;
  ~StateFolder() { remove(); }

 private:
  static StateFolder*& of_process() {
    static StateFolder* one = nullptr;
    return one;
  }
  static void stop(int signal) {
    of_process()->remove();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  void remove() {
    std::error_code ignored;
    if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }

  pid_t owner_;
  std::filesystem::path path_;
};

}  // namespace tenon::fuzz

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
    std::string name = (std::filesystem::temp_directory_path() / "tenon_fuzz_XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
    setenv("XDG_STATE_HOME", name.c_str(), 1);
    of_process() = this;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, stop);
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

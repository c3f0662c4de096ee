// SPDX-License-Identifier: Apache-2.0
#include "crashes/load_crashes.hpp"

#include <array>
#include <fstream>
#include <mutex>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/fnv.hpp"

#include "discovery/search_folders.hpp"

namespace tenon::host {
namespace fs = std::filesystem;
namespace {

struct Fault {
  int number;
  const char* line;
};
constexpr std::array kFaults = {Fault{SIGSEGV, "SIGSEGV\n"}, Fault{SIGBUS, "SIGBUS\n"},
                                Fault{SIGILL, "SIGILL\n"}, Fault{SIGABRT, "SIGABRT\n"}};
constexpr size_t kStackBytes = 256u << 10;  // a frame with AMX state takes 11 KiB of it

// Signal handlers are the process's and get no argument: this is all that they can know. Not a
// thread_local of the usual model, whose first use in a thread may allocate.
[[gnu::tls_model("initial-exec")]] thread_local LoadGuard* innermost = nullptr;
struct Handlers {
  std::mutex lock;
  int users = 0;
  std::array<struct sigaction, kFaults.size()> before;
};
Handlers& handlers() {
  static Handlers one;
  return one;
}

// Names one state of one file, the same in every process.
std::string state_name(const fs::path& plugin) {
  struct stat now{};
  if (stat(plugin.c_str(), &now) != 0) return {};
  std::string text = plugin.string() + '\0' + std::to_string(now.st_size) + '\0' +
                     std::to_string(now.st_mtim.tv_sec) + '.' + std::to_string(now.st_mtim.tv_nsec);
  return plugin.stem().string() + "-" + std::to_string(fnv1a(text));
}

fs::path record_of(const fs::path& plugin) {
  fs::path folder = state_folder();
  std::string name = state_name(plugin);
  return folder.empty() || name.empty() ? fs::path() : folder / "crashes" / name;
}

// A fault of the CPU, or the thread's own abort(); not what another process sent.
bool is_own_fault(const siginfo_t& info) {
  return info.si_code > 0 || info.si_pid == getpid();
}

// What the signal would have done without us. The handlers allow themselves to be interrupted by
// their own signal, so that what is raised here counts at once.
void as_before(size_t fault, int number, siginfo_t* info, void* context) {
  struct sigaction before = handlers().before[fault];
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    sigaction(number, &before, nullptr);  // a fault happens again when the handler returns
    if (before.sa_handler == SIG_DFL) raise(number);
  }
}

}  // namespace

LoadCrashes crashes_of(const fs::path& plugin) {
  LoadCrashes out{record_of(plugin), {}};
  if (out.record.empty()) return out;
  std::ifstream lines(out.record);
  for (std::string line; std::getline(lines, line);)
    out.signals.push_back(line);
  return out;
}

void forget(const LoadCrashes& crashes) {
  std::error_code gone;
  if (!crashes.signals.empty()) fs::remove(crashes.record, gone);
}

LoadGuard::LoadGuard(const fs::path& plugin)
    : record_(record_of(plugin)), outer_(innermost), process_(getpid()) {
  if (record_.empty()) return;
  for (fs::path at = fs::path(record_).parent_path(); at.has_relative_path(); at = at.parent_path())
    folders_.insert(folders_.begin(), at.string());
  lend_stack();
  innermost = this;
  Handlers& all = handlers();
  std::lock_guard hold(all.lock);
  if (all.users++) return;
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < kFaults.size(); ++i)
    sigaction(kFaults[i].number, &ours, &all.before[i]);
}

LoadGuard::~LoadGuard() {
  if (record_.empty()) return;
  innermost = outer_;
  if (written_at_ >= 0 && truncate(record_.c_str(), written_at_) == 0 && written_at_ == 0)
    unlink(record_.c_str());
  if (stack_) {
    stack_t off{}, now{};
    off.ss_flags = SS_DISABLE;
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == stack_.get()) sigaltstack(&off, nullptr);
  }
  Handlers& all = handlers();
  std::lock_guard hold(all.lock);
  if (--all.users) return;
  for (size_t i = 0; i < kFaults.size(); ++i) {
    struct sigaction now{};
    sigaction(kFaults[i].number, nullptr, &now);
    bool ours = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault;
    if (ours) sigaction(kFaults[i].number, &all.before[i], nullptr);  // else the plugin set its own
  }
}

// Without it the overflow of a stack could not be handled.
void LoadGuard::lend_stack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
  stack_.reset(new char[kStackBytes]);  // NOLINT: make_unique would touch every page
  stack_t lent{};
  lent.ss_sp = stack_.get();
  lent.ss_size = kStackBytes;
  sigaltstack(&lent, nullptr);
}

// Calls only what a signal handler may call.
void LoadGuard::write_down(const char* line) {
  if (written_at_ >= 0) return;
  for (const std::string& folder : folders_)
    mkdir(folder.c_str(), 0700);
  int file = open(record_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  written_at_ = lseek(file, 0, SEEK_END);
  size_t length = 0;
  while (line[length])
    ++length;
  if (::write(file, line, length) < 0) written_at_ = -1;
  close(file);
}

void LoadGuard::on_fault(int number, siginfo_t* info, void* context) {
  size_t fault = 0;
  while (kFaults[fault].number != number)
    ++fault;
  if (innermost && innermost->process_ == getpid() && is_own_fault(*info))
    innermost->write_down(kFaults[fault].line);
  as_before(fault, number, info, context);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "crashes/crash_report.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_set>

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>
#include <unwind.h>

#include "crashes/whereabouts.hpp"
#include "graph/op_table.hpp"
#include "registry/adopt.hpp"

namespace tenon::host {
namespace {

struct KnownPlugin {
  std::string file, id;
};
struct KnownFunction {
  const void* start;
  std::string text;  // "function run of component acme.pass"
};
// Signal handlers get no argument. Only grows: the handler reads it without the lock, and what it
// then misses is a name.
struct Known {
  std::mutex lock;
  std::deque<KnownPlugin> plugins;
  std::deque<KnownFunction> functions;
  std::unordered_set<const void*> starts;  // of the functions; not for the handler
  bool reported = false;
};
std::atomic<Known*> known{nullptr};

constexpr std::pair<int, const char*> kNames[] = {{SIGSEGV, "SIGSEGV"},
                                                  {SIGBUS, "SIGBUS"},
                                                  {SIGILL, "SIGILL"},
                                                  {SIGABRT, "SIGABRT"},
                                                  {SIGFPE, "SIGFPE"}};

// Standard error, a piece at a time: nothing may allocate any more. Names are what somebody wrote
// into a file, so that what a terminal would obey is left out.
void say(const char* text) {
  for (; *text; ++text) {
    char c = static_cast<unsigned char>(*text) < 0x20 || *text == 0x7f ? '?' : *text;
    if (::write(STDERR_FILENO, &c, 1) != 1) return;
  }
}

const KnownPlugin* plugin_at(const Known& all, void* address) {
  Dl_info library{};
  if (!dladdr(address, &library) || !library.dli_fname) return nullptr;
  for (const KnownPlugin& plugin : all.plugins)
    if (plugin.file == library.dli_fname) return &plugin;
  return nullptr;
}

const KnownFunction* function_at(const Known& all, void* address) {
  const void* start = _Unwind_FindEnclosingFunction(address);
  for (const KnownFunction& function : all.functions)
    if (start && function.start == start) return &function;
  return nullptr;
}

// "tenon: plugin acme (acme.so) crashed by SIGSEGV in ref of operator Squircle, at node s1"
void report(const Known& all, const char* signal) {
  void* frames[64];
  int n = backtrace(frames, 64);
  const KnownPlugin* plugin = nullptr;
  const KnownFunction* function = nullptr;
  for (int i = 0; i < n && !(plugin && function); ++i) {
    // A frame holds where the call returns to, which may be the next function.
    void* inside = static_cast<char*>(frames[i]) - 1;
    if (!plugin) plugin = plugin_at(all, frames[i]);
    if (plugin && !function) function = function_at(all, inside);
  }
  say("tenon: ");
  if (plugin) {
    say("plugin ");
    say(plugin->id.c_str());
    say(" (");
    say(plugin->file.c_str());
    say(")");
  } else {
    say("the process");
  }
  say(" crashed by ");
  say(signal);
  if (function) {
    say(" in ");
    say(function->text.c_str());
  }
  if (const char* where = whereabouts(); *where) {
    say(", at ");
    say(where);
  }
  (void)!::write(STDERR_FILENO, "\n", 1);
}

void on_crash(int number, siginfo_t*, void*) {
  std::signal(number, SIG_DFL);
  Known* all = known.load();
  if (all && !std::exchange(all->reported, true)) {
    alarm(5);  // where the crash left a lock that the report needs
    for (auto [of, name] : kNames)
      if (of == number) report(*all, name);
  }
  raise(number);
}

void know(Known& all, const void* start, std::string text) {
  if (start && all.starts.insert(start).second) all.functions.push_back({start, std::move(text)});
}

template <class F>
const void* start_of(F* function) {
  return reinterpret_cast<const void*>(function);
}

// Where a handler runs when the thread's own stack has overflowed.
void lend_stack() {
  constexpr size_t kBytes = 256u << 10;
  stack_t now{}, lent{};
  if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
  lent.ss_sp = new char[kBytes];  // NOLINT: lives as long as the process, and no page is touched
  lent.ss_size = kBytes;
  sigaltstack(&lent, nullptr);
}

}  // namespace

void report_crashes() {
  follow_this_thread();
  if (known.load()) return;
  lend_stack();
  void* first[2];
  backtrace(first, 2);  // loads what it needs, which must not happen in the handler
  known = new Known;    // NOLINT: lives as long as the process
  struct sigaction ours{};
  ours.sa_sigaction = on_crash;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (auto [number, name] : kNames) {
    struct sigaction before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_DFL) sigaction(number, &ours, nullptr);  // not a sanitizer's
  }
}

void know_plugin(const std::filesystem::path& file, std::string_view id) {
  Known* all = known.load();
  if (!all) return;
  std::lock_guard hold(all->lock);
  all->plugins.push_back({file.string(), std::string(id)});
}

void know_row(const tn_op& row) {
  Known* all = known.load();
  if (!all) return;
  std::string of = cat(" of operator ", view(row.type));
  std::lock_guard hold(all->lock);
  each_function([&]<auto column>(std::string_view name) {
    know(*all, start_of(row.*column), std::string(name) + of);
  });
}

void know_table(std::string_view role, std::string_view component, const void* table) {
  Known* all = known.load();
  if (!all) return;
  std::lock_guard hold(all->lock);
  for (auto [name, function] : functions_of(role, table))
    know(*all, function, cat("function ", name, " of component ", component));
}

}  // namespace tenon::host

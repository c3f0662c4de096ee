// SPDX-License-Identifier: Apache-2.0
#include "watchdog.hpp"

#include <cstdio>
#include <cstdlib>

#include <poll.h>
#include <unistd.h>

#include "tenon/cxx/terminal.hpp"

namespace tenon::lua {
namespace {

// For an orderly end: a training saves its checkpoint, outputs that are not whole are removed.
constexpr std::chrono::milliseconds kMoment(750);

// What the script has printed, unless that could wait for ever for a reader or for a lock.
void flush_output() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT) || ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  funlockfile(stdout);
}

}  // namespace

Watchdog::Watchdog(SessionPtr session, std::string script, double seconds)
    : session_(std::move(session)), script_(std::move(script)), seconds_(seconds) {
  constexpr double kLongest = 1e8;  // three years; more would overflow the clock
  deadline_ = seconds > 0
                  ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(std::min(seconds, kLongest)))
                  : Clock::time_point::max();
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard hold(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string Watchdog::why_late() const {
  char text[32];
  std::snprintf(text, sizeof text, "%g", seconds_);
  return cat("stopped: the script may run for ", text, " s (--time)");
}

void Watchdog::expect_end(const std::string& why) {
  {
    std::lock_guard hold(mutex_);
    if (last_moment_ != Clock::time_point::max()) return;
    why_ = why;
    last_moment_ = Clock::now() + kMoment;
  }
  changed_.notify_all();
}

void Watchdog::watch() {
  std::unique_lock hold(mutex_);
  while (!done_) {
    Clock::time_point now = Clock::now();
    if (now >= last_moment_) end_process();
    if (now >= deadline_ && last_moment_ == Clock::time_point::max()) {
      why_ = why_late();
      last_moment_ = deadline_ + kMoment;
      tenon_cancel_request(session_->cancel());
    }
    Clock::time_point next = std::min(deadline_ > now ? deadline_ : last_moment_, last_moment_);
    if (next == Clock::time_point::max()) {
      changed_.wait(hold);
    } else {
      changed_.wait_until(hold, next);
    }
  }
}

// The other threads may be anywhere, so nothing is unwound: the host removes what it was writing
// (at_quick_exit), and that is all.
void Watchdog::end_process() const {
  flush_output();
  cxx::complain_of(
      cat("tenon: ", script_, ": ", why_, "; it did not end by itself, so the process is ended"));
  std::quick_exit(1);
}

}  // namespace tenon::lua

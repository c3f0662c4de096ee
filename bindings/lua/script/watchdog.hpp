// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ends the process when a script goes on past one of its limits. Lua's hooks see neither what runs
// while they are off (a message handler, a closing value of a dead coroutine) nor calls into
// libraries, so the last word is a thread's.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "../module/runtime.hpp"

namespace tenon::lua {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // seconds: how long the script may run; 0: no limit.
  Watchdog(SessionPtr session, std::string script, double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool is_late() const { return seconds_ > 0 && Clock::now() > deadline_; }
  std::string why_late() const;
  // The script hit another limit and was notified: it has a moment to end.
  void expect_end(const std::string& why);

 private:
  void watch();
  [[noreturn]] void end_process() const;

  SessionPtr session_;
  std::string script_, why_;
  double seconds_;
  Clock::time_point deadline_, last_moment_ = Clock::time_point::max();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace tenon::lua

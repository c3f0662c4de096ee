// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log lines and progress on their way to the embedding program. Its functions are called from any
// thread, one call at a time; what they themselves log is dropped, as it could go on for ever. They
// may use the session: nobody waits for their return, who may hold a lock that they need. What
// comes meanwhile waits in a queue, which the thread that is calling them empties.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "tenon/host/log.h"
#include "tenon/host/progress.h"

namespace tenon::host {

class LogHub {
 public:
  using OnLog = void(TN_CALL*)(void* arg, uint32_t level, tn_str who, tn_str message);
  using OnProgress =
      void(TN_CALL*)(void* arg, uint64_t task, tn_str title, uint64_t done, uint64_t total);

  // NULL: nowhere. After the return the former function is not called any more.
  void on_log(OnLog seen, void* arg);
  void on_progress(OnProgress seen, void* arg);

  bool enabled(uint32_t level) const;
  void write(uint32_t level, std::string_view who, std::string_view message);

  uint64_t begin_task(std::string_view title, uint64_t total);
  void update_task(uint64_t task, uint64_t done);  // a task that has ended is ignored
  void end_task(uint64_t task);

 private:
  struct Task {
    std::string title;
    uint64_t total;
  };
  using Hold = std::unique_lock<std::mutex>;

  Hold when_idle();
  void deliver(Hold hold, std::function<void()> call);
  void show(uint64_t task, std::string title, uint64_t done, uint64_t total, Hold hold);

  std::mutex mutex_;  // all below, and never held during a call
  std::condition_variable idle_;
  std::deque<std::function<void()>> waiting_;
  std::thread::id caller_;
  std::atomic<bool> has_log_{false};
  OnLog log_ = nullptr;
  void* log_arg_ = nullptr;
  OnProgress progress_ = nullptr;
  void* progress_arg_ = nullptr;
  std::map<uint64_t, Task> tasks_;
  uint64_t last_task_ = 0;
};

const tn_host_log* log_service();
const tn_host_progress* progress_service();

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "services/log.hpp"

#include "services/boundary.hpp"
#include "services/session.hpp"

namespace tenon::host {

// Holds the lock, unless this thread already does because it is inside the embedder's function.
class LogHub::Turn {
 public:
  explicit Turn(LogHub& hub) : hub_(hub) {
    if (hub.caller_.load() == std::this_thread::get_id()) return;
    hub.mutex_.lock();
    hub.caller_ = std::this_thread::get_id();
    mine_ = true;
  }
  ~Turn() {
    if (!mine_) return;
    hub_.caller_ = std::thread::id();
    hub_.mutex_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool mine() const { return mine_; }

 private:
  LogHub& hub_;
  bool mine_ = false;
};

void LogHub::on_log(OnLog seen, void* arg) {
  Turn turn(*this);  // from inside a call: still allowed, the call is on this thread
  log_ = seen;
  log_arg_ = arg;
  has_log_ = seen != nullptr;
}

void LogHub::on_progress(OnProgress seen, void* arg) {
  Turn turn(*this);
  progress_ = seen;
  progress_arg_ = arg;
}

bool LogHub::enabled(uint32_t level) const {
  return level <= TN_LOG_ERROR && has_log_.load(std::memory_order_relaxed);
}

void LogHub::write(uint32_t level, std::string_view who, std::string_view message) {
  if (!enabled(level)) return;
  Turn turn(*this);
  if (turn.mine() && log_) log_(log_arg_, level, str(who), str(message));
}

uint64_t LogHub::begin_task(std::string_view title, uint64_t total) {
  Turn turn(*this);
  uint64_t task = ++last_task_;
  tasks_.emplace(task, Task{std::string(title), total});
  if (turn.mine() && progress_) progress_(progress_arg_, task, str(title), 0, total);
  return task;
}

void LogHub::update_task(uint64_t task, uint64_t done) {
  Turn turn(*this);
  auto found = tasks_.find(task);
  if (found == tasks_.end() || !turn.mine() || !progress_) return;
  // UINT64_MAX says that the task has ended, which only end_task() may say.
  done = done == UINT64_MAX ? done - 1 : done;
  progress_(progress_arg_, task, str(found->second.title), done, found->second.total);
}

void LogHub::end_task(uint64_t task) {
  Turn turn(*this);
  auto ended = tasks_.extract(task);
  if (ended.empty() || !turn.mine() || !progress_) return;
  progress_(progress_arg_, task, str(ended.mapped().title), UINT64_MAX, ended.mapped().total);
}

namespace {

int32_t enabled(tn_ctx* ctx, uint32_t level) {
  return ctx->session->log->enabled(level);
}
void write(tn_ctx* ctx, uint32_t level, tn_str message) {
  quietly([&] { ctx->session->log->write(level, ctx->id, view(message)); });
}
uint64_t begin(tn_ctx* ctx, tn_str title, uint64_t total) {
  uint64_t task = 0;
  quietly([&] { task = ctx->session->log->begin_task(view(title), total); });
  return task;
}
void update(tn_ctx* ctx, uint64_t task, uint64_t done) {
  quietly([&] { ctx->session->log->update_task(task, done); });
}
void end(tn_ctx* ctx, uint64_t task) {
  quietly([&] { ctx->session->log->end_task(task); });
}

}  // namespace

const tn_host_log* log_service() {
  static const tn_host_log table{sizeof table, 1, enabled, write};
  return &table;
}

const tn_host_progress* progress_service() {
  static const tn_host_progress table{sizeof table, 1, begin, update, end};
  return &table;
}

}  // namespace tenon::host

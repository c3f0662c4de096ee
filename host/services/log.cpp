// SPDX-License-Identifier: Apache-2.0
#include "services/log.hpp"

#include <algorithm>

#include "services/boundary.hpp"
#include "services/session.hpp"

namespace tenon::host {

// A call sees the embedder's functions as they are; from inside of one they may be set, too.
LogHub::Hold LogHub::when_idle() {
  Hold hold(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  idle_.wait(hold, [&] { return caller_ == std::thread::id() || caller_ == self; });
  return hold;
}

void LogHub::on_log(OnLog seen, void* arg) {
  Hold hold = when_idle();
  log_ = seen;
  log_arg_ = arg;
  has_log_ = seen != nullptr;
}

void LogHub::on_progress(OnProgress seen, void* arg) {
  Hold hold = when_idle();
  progress_ = seen;
  progress_arg_ = arg;
}

void LogHub::deliver(Hold hold, std::function<void()> call) {
  const std::thread::id self = std::this_thread::get_id();
  if (caller_ == self) return;
  waiting_.push_back(std::move(call));
  if (caller_ != std::thread::id()) return;
  caller_ = self;
  while (!waiting_.empty()) {
    std::function<void()> next = std::move(waiting_.front());
    waiting_.pop_front();
    hold.unlock();
    quietly(next);
    hold.lock();
  }
  caller_ = {};
  idle_.notify_all();
}

bool LogHub::enabled(uint32_t level) const {
  return level <= TN_LOG_ERROR && has_log_.load(std::memory_order_relaxed);
}

void LogHub::write(uint32_t level, std::string_view who, std::string_view message) {
  if (!enabled(level)) return;
  deliver(Hold(mutex_), [this, level, who = std::string(who), message = std::string(message)] {
    if (log_) log_(log_arg_, level, str(who), str(message));
  });
}

void LogHub::show(uint64_t task, std::string title, uint64_t done, uint64_t total, Hold hold) {
  deliver(std::move(hold), [this, task, title = std::move(title), done, total] {
    if (progress_) progress_(progress_arg_, task, str(title), done, total);
  });
}

uint64_t LogHub::begin_task(std::string_view title, uint64_t total) {
  Hold hold(mutex_);
  uint64_t task = ++last_task_;
  tasks_.emplace(task, Task{std::string(title), total});
  show(task, std::string(title), 0, total, std::move(hold));
  return task;
}

void LogHub::update_task(uint64_t task, uint64_t done) {
  Hold hold(mutex_);
  auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  const auto& [title, total] = found->second;
  // UINT64_MAX says that the task has ended, which only end_task() may say.
  show(task, title, std::min(done, UINT64_MAX - 1), total, std::move(hold));
}

void LogHub::end_task(uint64_t task) {
  Hold hold(mutex_);
  auto ended = tasks_.extract(task);
  if (ended.empty()) return;
  show(task, ended.mapped().title, UINT64_MAX, ended.mapped().total, std::move(hold));
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

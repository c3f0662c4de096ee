// SPDX-License-Identifier: Apache-2.0
#include "ahead.hpp"

#include <chrono>
#include <system_error>

#include <pthread.h>
#include <signal.h>

namespace tenon::trainer {
namespace {

// Batches that lie ready: with one more in work, a batch that takes longer than its step once in a
// while is not waited for.
constexpr size_t kReady = 2;

Status behind_the_last() {
  return {TN_INTERNAL, "a batch behind the last one was asked for"};
}

}  // namespace

Ahead::Ahead(Make make, uint64_t first, uint64_t end)
    : make_(std::move(make)), at_(first), end_(end) {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // No thread to be had: next() makes each batch when it is wanted.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Ahead::~Ahead() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  has_room_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Ahead::work() {
  prepare();
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  is_ready_.notify_one();
}

void Ahead::prepare() {
  for (; at_ < end_; ++at_) {
    {
      std::unique_lock lock(mutex_);
      has_room_.wait(lock, [this] { return stops_ || ready_.size() < kReady; });
      if (stops_) return;
    }
    std::optional<Result<std::vector<Tensor>>> made;
    try {
      made.emplace(make_(at_));
    } catch (const std::exception& thrown) {
      made.emplace(Status(TN_INTERNAL, cat("a batch could not be prepared: ", thrown.what())));
    }
    bool failed = !made->ok();
    {
      std::lock_guard lock(mutex_);
      ready_.push_back(std::move(*made));
    }
    is_ready_.notify_one();
    if (failed) return;
  }
}

Result<std::vector<Tensor>> Ahead::next() {
  if (!thread_.joinable()) {
    if (at_ >= end_) return behind_the_last();
    return make_(at_++);
  }
  std::unique_lock lock(mutex_);
  if (ready_.empty()) {
    auto began = std::chrono::steady_clock::now();
    is_ready_.wait(lock, [this] { return ended_ || !ready_.empty(); });
    seconds_waited_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  if (ready_.empty()) return behind_the_last();
  Result<std::vector<Tensor>> out = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  has_room_.notify_one();
  return out;
}

}  // namespace tenon::trainer

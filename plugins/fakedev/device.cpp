// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <chrono>
#include <cstdlib>

namespace tenon::fakedev {

Result<void*> Memory::alloc(uint64_t bytes) {
  uint64_t rounded = (bytes + 63) / 64 * 64 + 64;
  void* host = std::aligned_alloc(64, rounded);
  if (!host) return Status(TN_RESOURCE_EXHAUSTED, cat("out of device memory: ", bytes, " bytes"));
  void* device = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) | kBit);
  std::lock_guard lock(mutex_);
  blocks_[device] = bytes;
  return device;
}

void Memory::free(void* device) {
  std::lock_guard lock(mutex_);
  if (blocks_.erase(device)) std::free(to_host(device));
}

uint64_t Memory::live_blocks() const {
  std::lock_guard lock(mutex_);
  return blocks_.size();
}

Status Event::wait(uint64_t timeout_ns) {
  std::unique_lock lock(mutex);
  if (timeout_ns == UINT64_MAX) {
    fired_changed.wait(lock, [this] { return fired; });
  } else if (!fired_changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                                     [this] { return fired; })) {
    return {TN_UNAVAILABLE, "the event has not fired within the time"};
  }
  if (failure.code == TN_OK) return {};
  return {failure.code, failure.message};
}

void Event::fire(Failure with) {
  std::lock_guard lock(mutex);
  failure = std::move(with);
  fired = true;
  fired_changed.notify_all();
}

Stream::Stream(int64_t delay_us) : delay_us_(delay_us), thread_([this] { loop(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Stream::push(Work work) {
  std::lock_guard lock(mutex_);
  items_.push_back({std::move(work), nullptr});
  changed_.notify_all();
}

std::shared_ptr<Event> Stream::record() {
  auto event = std::make_shared<Event>();
  std::lock_guard lock(mutex_);
  items_.push_back({nullptr, event});
  changed_.notify_all();
  return event;
}

void Stream::wait(std::shared_ptr<Event> event) {
  push([event = std::move(event)] { return event->wait(UINT64_MAX); });
}

Status Stream::synchronize() {
  return record()->wait(UINT64_MAX);
}

void Stream::loop() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !items_.empty(); });
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    if (item.event) {
      // Whoever is told of a failure has it: the stream is usable again.
      item.event->fire(std::exchange(failure_, Failure()));
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    if (failure_.code != TN_OK) continue;  // poisoned: work after a failure is dropped
    Status status = item.work();
    if (!status.ok()) failure_ = {status.code(), status.message()};
  }
}

}  // namespace tenon::fakedev

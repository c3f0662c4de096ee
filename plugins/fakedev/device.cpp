// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <chrono>
#include <cstdlib>
#include <optional>

namespace tenon::fakedev {

void* Memory::plain(const void* address) {
  constexpr uintptr_t kMarks = ~uintptr_t{0} << kLowestBit;
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) & ~kMarks);
}

char* Memory::to_host(const DLTensor& on_device) {
  return static_cast<char*>(plain(on_device.data)) + on_device.byte_offset;
}

Result<void*> Memory::alloc(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  void* host = nullptr;
  if (bytes <= limit_ - used_) host = std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (!host) {
    return Status(TN_RESOURCE_EXHAUSTED, cat("out of device memory: ", bytes, " bytes asked for, ",
                                             limit_ - used_, " of ", limit_, " free"));
  }
  uintptr_t device = reinterpret_cast<uintptr_t>(host) | bit_;
  blocks_[device] = bytes;
  used_ += bytes;
  return reinterpret_cast<void*>(device);
}

void Memory::free(void* device) {
  std::lock_guard lock(mutex_);
  auto block = blocks_.find(reinterpret_cast<uintptr_t>(device));
  if (block == blocks_.end()) return;
  used_ -= block->second;
  blocks_.erase(block);
  std::free(plain(device));
}

Status Memory::check(const DLTensor& tensor) const {
  uintptr_t first = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  if (!(first & bit_)) return invalid("expected memory of this device, got another's");
  uint64_t bytes = bytes_of(dtype_of(tensor), element_count(tensor));
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(first);
  if (block == blocks_.begin()) return invalid("expected a block of this device, got none");
  --block;
  if (first + bytes <= block->first + block->second) return {};
  return invalid(cat("expected ", bytes, " bytes in a block of this device, got one of ",
                     block->second, " or a freed one"));
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
  if (!poison) return {};
  return {poison->failure.code, poison->failure.message};
}

Status Event::sync(uint64_t timeout_ns) {
  Status status = wait(timeout_ns);
  std::lock_guard lock(mutex);
  if (poison) poison->reported = true;
  return status;
}

void Event::fire(std::shared_ptr<Poison> with) {
  std::lock_guard lock(mutex);
  poison = std::move(with);
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

EventHandle Stream::record() {
  auto event = std::make_shared<Event>();
  std::lock_guard lock(mutex_);
  items_.push_back({nullptr, event});
  changed_.notify_all();
  return event;
}

void Stream::wait(EventHandle event) {
  push([event = std::move(event)] { return event->wait(UINT64_MAX); });
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
    if (poison_ && poison_->reported) poison_.reset();
    if (item.event) {
      item.event->fire(poison_);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    if (poison_) continue;  // work after a failure is dropped
    Status status = item.work();
    if (status.ok()) continue;
    poison_ = std::make_shared<Poison>();
    poison_->failure = {status.code(), status.text()};
  }
}

Status enqueue(const tn_exec& exec, Work work, bool finish) {
  std::optional<Stream> own;
  finish = finish || !exec.stream;
  Stream& stream = exec.stream ? *static_cast<Stream*>(exec.stream) : own.emplace(0);
  for (uint64_t i = 0; i < exec.wait_count; ++i)
    stream.wait(*static_cast<EventHandle*>(exec.wait_events[i]));
  stream.push(std::move(work));
  if (!finish && !exec.out_done) return {};
  EventHandle done = stream.record();
  if (exec.out_done) *exec.out_done = new EventHandle(done);
  return finish ? done->sync(UINT64_MAX) : Status();
}

}  // namespace tenon::fakedev

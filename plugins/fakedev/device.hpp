// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device that is not there: memory whose addresses the CPU cannot use, streams that run their
// work later and in order, events that carry what went wrong. The first failure of a stream
// poisons what comes after it until somebody synchronises and is told.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tenon/sdk/tensor.hpp"

namespace tenon::fakedev {

// Device memory. An address of the device has bit 62 set: no canonical address on x86-64 or
// AArch64, so that a CPU that follows it traps instead of reading something.
class Memory {
 public:
  static void* to_host(const void* device) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(device) & ~kBit);
  }
  static bool is_device(const void* address) {
    return (reinterpret_cast<uintptr_t>(address) & kBit) != 0;
  }
  Result<void*> alloc(uint64_t bytes);
  void free(void* device);
  uint64_t live_blocks() const;

 private:
  static constexpr uintptr_t kBit = uintptr_t{1} << 62;
  mutable std::mutex mutex_;
  std::map<void*, uint64_t> blocks_;
};

// A failure as text, so that it can wait: statuses belong to one thread's error path.
struct Failure {
  int32_t code = TN_OK;
  std::string message;
};

struct Event {
  std::mutex mutex;
  std::condition_variable fired_changed;
  bool fired = false;
  Failure failure;
  Status wait(uint64_t timeout_ns);
  void fire(Failure with);
};

using Work = std::function<Status()>;

class Stream {
 public:
  explicit Stream(int64_t delay_us);
  ~Stream();  // finishes what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void push(Work work);
  std::shared_ptr<Event> record();
  void wait(std::shared_ptr<Event> event);
  Status synchronize();

 private:
  struct Item {
    Work work;
    std::shared_ptr<Event> event;  // fires here instead of working
  };
  void loop();

  int64_t delay_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  Failure failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tenon::fakedev

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device that is not there: memory whose addresses the CPU cannot use, streams that run their
// work later and in order, events that carry what went wrong. The first failure of a stream
// poisons what comes after it until a caller synchronises and gets the status.

#include <atomic>
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

// Memory of one device. Its addresses have one high bit set: no canonical address on x86-64 or
// AArch64, so that a CPU that follows one traps instead of reading something.
class Memory {
 public:
  Memory(int bit, uint64_t limit) : bit_(uintptr_t{1} << bit), limit_(limit) {}
  static char* to_host(const DLTensor& on_device);
  Result<void*> alloc(uint64_t bytes);
  void free(void* device);
  // Whether the tensor lies in a block of this device that has not been freed.
  Status check(const DLTensor& tensor) const;
  uint64_t limit() const { return limit_; }
  uint64_t live_blocks() const;

 private:
  static constexpr int kLowestBit = 61;  // all above are marks
  static void* plain(const void* address);
  uintptr_t bit_;
  uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, uint64_t> blocks_;  // by address on the device
  uint64_t used_ = 0;
};

// A failure as text, so that it can wait: statuses belong to one thread's error path.
struct Failure {
  int32_t code = TN_OK;
  std::string message;
};

// A failure of a stream: what follows is dropped until a caller has got it.
struct Poison {
  Failure failure;
  std::atomic<bool> reported{false};
};

struct Event {
  std::mutex mutex;
  std::condition_variable fired_changed;
  bool fired = false;
  std::shared_ptr<Poison> poison;    // NULL: all went well
  Status wait(uint64_t timeout_ns);  // as a stream does
  Status sync(uint64_t timeout_ns);  // as the CPU does, which gets the status of a failure
  void fire(std::shared_ptr<Poison> with);
};

using EventHandle = std::shared_ptr<Event>;
using Work = std::function<Status()>;

class Stream {
 public:
  explicit Stream(int64_t delay_us);
  ~Stream();  // finishes what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void push(Work work);
  EventHandle record();
  void wait(EventHandle event);

 private:
  struct Item {
    Work work;
    EventHandle event;  // fires here instead of working
  };
  void loop();

  int64_t delay_us_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::shared_ptr<Poison> poison_;
  bool stopping_ = false;
  std::thread thread_;
};

// Queues work on the stream of `exec`, after the events that it names, and hands out the event that
// it asks for. Done when this returns if there is no stream, or `finish` is asked for.
Status enqueue(const tn_exec& exec, Work work, bool finish = false);

}  // namespace tenon::fakedev

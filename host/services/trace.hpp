// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happened when: spans and counters of each thread, written as the JSON that
// chrome://tracing and Perfetto read. Costs one atomic load while it is off.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tenon/host/trace.h"

namespace tenon::host {

class TraceHub {
 public:
  bool enabled() const { return on_.load(std::memory_order_relaxed); }
  void start();        // forgets what was recorded before
  std::string stop();  // Chrome's JSON; spans that are still open end now
  void begin(std::string_view category, std::string_view name);
  void end();  // without a begin: ignored
  void counter(std::string_view name, double value);

  // What one thread keeps at most; the rest is counted as dropped.
  static constexpr size_t kMostEvents = 1u << 20;

 private:
  struct Event {
    std::string category;
    std::string name;
    int64_t start_ns;
    int64_t length_ns;  // kOpen, kCounter
    double value;
  };
  static constexpr int64_t kOpen = -1;
  static constexpr int64_t kCounter = -2;
  struct Track {       // of one thread
    std::mutex mutex;  // against start() and stop()
    std::vector<Event> events;
    std::vector<size_t> open;  // the innermost span last; kMostEvents: a dropped one
    uint64_t dropped = 0;
    void clear();
  };

  Track& track();  // of the calling thread
  int64_t now() const;
  static size_t append(Track& track, Event event);

  std::atomic<bool> on_{false};
  std::atomic<int64_t> origin_ns_{0};
  std::shared_mutex mutex_;  // guards the map, not the tracks
  std::map<std::thread::id, std::unique_ptr<Track>> tracks_;
};

// A span of the calling thread while it lives: in the trace when one is recorded, and in the report
// of a crash.
class Span {
 public:
  Span(TraceHub& hub, std::string_view category, std::string_view name) noexcept;
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  TraceHub& hub_;
};

const tn_host_trace* trace_service();

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
#include "services/trace.hpp"

#include <nlohmann/json.hpp>

#include "services/boundary.hpp"
#include "services/clock.hpp"
#include "services/rooms.hpp"
#include "services/session.hpp"

namespace tenon::host {

int64_t TraceHub::now() const {
  return static_cast<int64_t>(now_ns()) - origin_ns_.load(std::memory_order_relaxed);
}

TraceHub::Track& TraceHub::track() {
  {
    std::shared_lock lock(mutex_);
    auto found = tracks_.find(std::this_thread::get_id());
    if (found != tracks_.end()) return *found->second;
  }
  std::unique_lock lock(mutex_);
  std::unique_ptr<Track>& made = tracks_[std::this_thread::get_id()];
  if (!made) made = std::make_unique<Track>();
  return *made;
}

void TraceHub::Track::clear() {
  events.clear();
  open.clear();
  dropped = 0;
}

size_t TraceHub::append(Track& track, Event event) {
  if (track.events.size() >= kMostEvents) {
    ++track.dropped;
    return kMostEvents;
  }
  track.events.push_back(std::move(event));
  return track.events.size() - 1;
}

void TraceHub::start() {
  std::unique_lock lock(mutex_);
  for (auto& [thread, track] : tracks_) {
    std::lock_guard hold(track->mutex);
    track->clear();
  }
  origin_ns_ = static_cast<int64_t>(now_ns());
  on_ = true;
}

void TraceHub::begin(std::string_view category, std::string_view name) {
  if (!enabled()) return;
  Track& mine = track();
  std::lock_guard hold(mine.mutex);
  mine.open.reserve(mine.open.size() + 1);
  mine.open.push_back(append(mine, {std::string(category), std::string(name), now(), kOpen, 0}));
}

void TraceHub::end() {
  if (!enabled()) return;
  Track& mine = track();
  std::lock_guard hold(mine.mutex);
  if (mine.open.empty()) return;
  size_t at = mine.open.back();
  mine.open.pop_back();
  if (at < mine.events.size()) mine.events[at].length_ns = now() - mine.events[at].start_ns;
}

void TraceHub::counter(std::string_view name, double value) {
  if (!enabled()) return;
  Track& mine = track();
  std::lock_guard hold(mine.mutex);
  append(mine, {{}, std::string(name), now(), kCounter, value});
}

std::string TraceHub::stop() {
  on_ = false;
  auto dump = [](const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string text = "{\"traceEvents\":[";
  uint64_t dropped = 0;
  int number = 0;  // of the thread
  bool first = true;
  std::unique_lock lock(mutex_);
  for (auto& [thread, track] : tracks_) {
    std::lock_guard hold(track->mutex);
    ++number;
    dropped += track->dropped;
    for (const Event& event : track->events) {
      nlohmann::json row = {{"pid", 1},
                            {"tid", number},
                            {"ts", static_cast<double>(event.start_ns) / 1e3},
                            {"name", event.name}};
      if (event.length_ns == kCounter) {
        row["ph"] = "C";
        row["args"] = {{"value", event.value}};
      } else {
        int64_t length = event.length_ns == kOpen ? now() - event.start_ns : event.length_ns;
        row["ph"] = "X";
        row["cat"] = event.category;
        row["dur"] = static_cast<double>(length) / 1e3;
      }
      text += (first ? "\n" : ",\n") + dump(row);
      first = false;
    }
    track->clear();
  }
  return text +
         "],\n\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":" + std::to_string(dropped) +
         "}}\n";
}

Span::Span(TraceHub& hub, std::string_view category, std::string_view name) noexcept : hub_(hub) {
  rooms().crashes.enter(category, name);
  quietly([&] { hub_.begin(category, name); });
}

Span::~Span() {
  rooms().crashes.leave();
  quietly([&] { hub_.end(); });
}

namespace {

TraceHub& hub(tn_ctx* ctx) {
  return *ctx->session->trace;
}
int32_t enabled(tn_ctx* ctx) {
  return hub(ctx).enabled();
}
void begin(tn_ctx* ctx, tn_str category, tn_str name) {
  rooms().crashes.enter(view(category), view(name));
  quietly([&] { hub(ctx).begin(view(category), view(name)); });
}
void end(tn_ctx* ctx) {
  rooms().crashes.leave();
  quietly([&] { hub(ctx).end(); });
}
void counter(tn_ctx* ctx, tn_str name, double value) {
  quietly([&] { hub(ctx).counter(view(name), value); });
}

}  // namespace

const tn_host_trace* trace_service() {
  static const tn_host_trace table{sizeof table, 1, enabled, begin, end, counter};
  return &table;
}

}  // namespace tenon::host

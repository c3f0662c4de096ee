// SPDX-License-Identifier: Apache-2.0
// The streams of a run on its devices: what waits for what, and the CPU for all.
#include "plan/plan.hpp"

namespace tenon::host {

tn_exec RunContext::exec_on(int backend,
                            DeviceQueues::Kind kind,
                            const std::vector<int>& reads,
                            void** done) {
  tn_exec exec{};
  exec.struct_size = sizeof exec;
  if (!compiled->plan->backends[backend]->own_memory) return exec;
  waited.clear();
  for (int slot : reads) {
    // What the same stream made comes before this anyway.
    if (slot >= 0 && ready[slot].event && ready[slot].kind != kind)
      waited.push_back(ready[slot].event);
  }
  DeviceQueues& on = queues[backend];
  exec.stream = on.streams[kind];
  exec.wait_events = waited.data();
  exec.wait_count = waited.size();
  exec.out_done = done;
  on.dirty[kind] = on.unmarked[kind] = true;  // also when the call fails half-way
  return exec;
}

void RunContext::queued(int backend,
                        DeviceQueues::Kind kind,
                        const std::vector<int>& writes,
                        void* done) {
  if (!done) return;
  queues[backend].events.push_back(done);
  queues[backend].unmarked[kind] = false;
  for (int slot : writes)
    ready[slot] = {done, kind};
}

bool RunContext::is_busy(int backend) const {
  return queues[backend].dirty[DeviceQueues::kParts] ||
         queues[backend].dirty[DeviceQueues::kCopies];
}

Status RunContext::wait_all() {
  Status first;
  for (size_t b = 0; b < queues.size(); ++b) {
    if (!is_busy(static_cast<int>(b))) continue;
    DeviceQueues& on = queues[b];
    BackendUse& use = *compiled->plan->backends[b];
    for (int kind : {DeviceQueues::kParts, DeviceQueues::kCopies}) {
      if (on.unmarked[kind]) {
        void* event = nullptr;
        Status status =
            use.called("event_record", use.table->event_record(use.self, on.streams[kind], &event));
        if (event) on.events.push_back(event);
        if (first.ok()) first = std::move(status);
      }
      on.dirty[kind] = on.unmarked[kind] = false;
    }
    // The newest first: a device that is notified of a failure takes up work again, and by then
    // there is none left that was queued behind the failure. The oldest failure is the run's.
    Status oldest;
    for (; !on.events.empty(); on.events.pop_back()) {
      Status status =
          use.called("run", use.table->event_sync(use.self, on.events.back(), UINT64_MAX));
      use.table->event_free(use.self, on.events.back());
      if (!status.ok()) oldest = std::move(status);
    }
    if (first.ok()) first = std::move(oldest);
  }
  std::ranges::fill(ready, Ready());
  return first;
}

}  // namespace tenon::host

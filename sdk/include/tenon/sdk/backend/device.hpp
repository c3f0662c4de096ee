// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory, streams and events of a backend that is not the CPU: the functions of its table from
// methods that give a Status or a Result. T, the backend, has
//   Result<void*> alloc(int32_t device, uint64_t bytes);
//   Status free(int32_t device, void* memory, Event* after);         after: NULL, or wait for it
//   Status copy(const DLTensor& src, DLTensor& dst, const tn_exec&);
//   Result<Stream*> new_stream(int32_t device);     void free_stream(Stream*);
//   void* native_stream(Stream*, std::string_view kind);
//   Result<Event*> record(Stream*);                 void free_event(Event*);
//   Status wait(Stream*, Event*);                   Status sync(Event*, uint64_t timeout_ns);

#include "tenon/sdk/role/backend.hpp"

namespace tenon::backend {

namespace detail {

template <class Make>
tn_status* give(void** out, Make&& make) {
  *out = nullptr;
  return guard([&]() -> Status {
    TN_TRY(made, make());
    *out = made;
    return {};
  });
}

}  // namespace detail

template <class T, class Stream, class Event>
void add_device(tn_backend& t) {
  using detail::give;
  t.alloc = [](void* self, int32_t device, uint64_t bytes, void** out) -> tn_status* {
    return give(out, [&] { return object_of<T>(self).alloc(device, bytes); });
  };
  t.free = [](void* self, int32_t device, void* memory, void* after) {
    Status ignored(
        guard([&] { return object_of<T>(self).free(device, memory, static_cast<Event*>(after)); }));
  };
  t.copy = [](void* self, const DLTensor* src, DLTensor* dst, const tn_exec* exec) -> tn_status* {
    return guard([&] {
      Sized<tn_exec> how(exec);
      return object_of<T>(self).copy(*src, *dst, *how.get());
    });
  };
  t.stream_new = [](void* self, int32_t device, void** out) -> tn_status* {
    return give(out, [&] { return object_of<T>(self).new_stream(device); });
  };
  t.stream_free = [](void* self, void* stream) {
    object_of<T>(self).free_stream(static_cast<Stream*>(stream));
  };
  t.stream_native = [](void* self, void* stream, tn_str kind) -> void* {
    return object_of<T>(self).native_stream(static_cast<Stream*>(stream), view(kind));
  };
  t.event_record = [](void* self, void* stream, void** out) -> tn_status* {
    return give(out, [&] { return object_of<T>(self).record(static_cast<Stream*>(stream)); });
  };
  t.event_wait = [](void* self, void* stream, void* event) -> tn_status* {
    return guard([&] {
      return object_of<T>(self).wait(static_cast<Stream*>(stream), static_cast<Event*>(event));
    });
  };
  t.event_sync = [](void* self, void* event, uint64_t timeout_ns) -> tn_status* {
    return guard([&] { return object_of<T>(self).sync(static_cast<Event*>(event), timeout_ns); });
  };
  t.event_free = [](void* self, void* event) {
    object_of<T>(self).free_event(static_cast<Event*>(event));
  };
}

}  // namespace tenon::backend

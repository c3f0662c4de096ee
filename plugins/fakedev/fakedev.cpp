// SPDX-License-Identifier: Apache-2.0
// The backend "fakedev", for tests: everything that is hard about a GPU, without one.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "tenon/sdk/role/backend.hpp"

#include "executable.hpp"

namespace tenon::fakedev {

// Memory is one for the process, as a device's is: components come and go.
Memory& memory() {
  static Memory device;
  return device;
}

struct Compiled {
  std::unique_ptr<Executable> exe;
  int64_t fail_at = -1;
  std::atomic<int64_t> runs{0};
};

class FakeDevice {
 public:
  static Result<FakeDevice> create(tn_ctx* ctx, const Options& options) {
    return FakeDevice(ctx, options.integer("delay_us", 200));
  }

  Status devices(Sink& out) {
    return out.write(cat("[{\"id\": 0, \"type\": ", kDLExtDev,
                         ", \"name\": \"a device that is not there\", \"memory_bytes\": 1073741824",
                         ", \"live_blocks\": ", memory().live_blocks(), "}]"));
  }
  Status prepare(Sink&) { return {}; }

  Status claim(const tn_graph* graph, int32_t, const tn_claims& claims) {
    for (Node node : Graph{graph}.nodes()) {
      const tn_op* row = node.row();
      if (!row || row->traits & TN_OP_CONTROL) {
        claims.refuse(claims.ctx, node.id, str("no kernel on this device"));
      } else if (node.scope() == "cpu") {
        claims.refuse(claims.ctx, node.id, str("its scope is cpu"));
      } else {
        claims.take(claims.ctx, &node.id, 1);
      }
    }
    return {};
  }

  Result<void*> compile(const tn_graph* part, int32_t, const Options& options) {
    TN_TRY(exe, Executable::compile(ctx_, part));
    auto* compiled = new Compiled;
    compiled->exe = std::move(exe);
    compiled->fail_at = options.integer("fail_at", -1);
    return static_cast<void*>(compiled);
  }
  uint64_t workspace(void*) { return 0; }

  Status run(void* exe,
             void* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec) {
    auto* compiled = static_cast<Compiled*>(exe);
    bool fail = compiled->runs.fetch_add(1) == compiled->fail_at;
    auto* given = static_cast<DeviceState*>(state);
    if (exec->stream) {
      return compiled->exe->run(given, in, n_in, outputs, exec, static_cast<Stream*>(exec->stream),
                                fail);
    }
    Stream own(0);
    TN_CHECK(compiled->exe->run(given, in, n_in, outputs, exec, &own, fail));
    return own.synchronize();
  }
  void exe_free(void* exe) { delete static_cast<Compiled*>(exe); }
  Status describe(void*, Sink& out) { return out.write("{\"device\": \"fake\"}"); }
  Status profile(void*, Sink& out) { return out.write("[]"); }

  static tn_backend table();

 private:
  FakeDevice(tn_ctx* ctx, int64_t delay_us) : ctx_(ctx), delay_us_(delay_us) {}
  tn_ctx* ctx_;
  int64_t delay_us_;

  static FakeDevice& of(void* self) { return object_of<FakeDevice>(self); }
  static tn_status* alloc(void*, int32_t, uint64_t bytes, void** out);
  static void free(void*, int32_t, void* block, void* after_event);
  static tn_status* copy(void*, const DLTensor* src, DLTensor* dst, const tn_exec* exec);
  static tn_status* state_set(void*, void* state, tn_str name, const DLTensor* value);
  static tn_status* state_get(void*, void* state, tn_str name, DLTensor* out);
};

using EventHandle = std::shared_ptr<Event>;

tn_status* FakeDevice::alloc(void*, int32_t, uint64_t bytes, void** out) {
  *out = nullptr;
  return guard([&]() -> Status {
    TN_TRY(block, memory().alloc(bytes));
    *out = block;
    return {};
  });
}

void FakeDevice::free(void*, int32_t, void* block, void* after_event) {
  if (after_event) Status ignored = (*static_cast<EventHandle*>(after_event))->wait(UINT64_MAX);
  memory().free(block);
}

tn_status* FakeDevice::copy(void*, const DLTensor* src, DLTensor* dst, const tn_exec* exec) {
  return guard([&]() -> Status {
    auto address = [](const DLTensor& t) {
      return static_cast<char*>(Memory::to_host(t.data)) + t.byte_offset;
    };
    uint64_t bytes = bytes_of(dtype_of(*src), element_count(*src));
    char* to = address(*dst);
    const char* from = address(*src);
    auto work = [to, from, bytes]() -> Status {
      std::memcpy(to, from, bytes);
      return {};
    };
    if (!exec->stream) return work();
    static_cast<Stream*>(exec->stream)->push(work);
    return {};
  });
}

tn_status* FakeDevice::state_set(void*, void* state, tn_str name, const DLTensor* value) {
  return guard([&]() -> Status {
    auto& kept = *static_cast<DeviceState*>(state);
    const char* data = data_of<const char>(*value);
    std::lock_guard lock(kept.mutex);
    std::vector<char>& bytes = kept.values[std::string(view(name))];
    bytes.assign(data, data + bytes_of(dtype_of(*value), element_count(*value)));
    std::reverse(bytes.begin(), bytes.end());
    return {};
  });
}

tn_status* FakeDevice::state_get(void*, void* state, tn_str name, DLTensor* out) {
  return guard([&]() -> Status {
    auto& kept = *static_cast<DeviceState*>(state);
    std::lock_guard lock(kept.mutex);
    auto found = kept.values.find(std::string(view(name)));
    if (found == kept.values.end()) return {TN_NOT_FOUND, cat("no state ", view(name))};
    std::reverse_copy(found->second.begin(), found->second.end(), data_of<char>(*out));
    return {};
  });
}

tn_backend FakeDevice::table() {
  tn_backend t = BackendRole<FakeDevice>::cpu_table();
  t.alloc = alloc;
  t.free = free;
  t.stream_new = [](void* self, int32_t, void** out) -> tn_status* {
    *out = nullptr;
    return guard([&]() -> Status {
      *out = new Stream(of(self).delay_us_);
      return {};
    });
  };
  t.stream_free = [](void*, void* stream) { delete static_cast<Stream*>(stream); };
  t.stream_native = [](void*, void*, tn_str) -> void* { return nullptr; };
  t.event_record = [](void*, void* stream, void** out) -> tn_status* {
    *out = nullptr;
    return guard([&]() -> Status {
      *out = new EventHandle(static_cast<Stream*>(stream)->record());
      return {};
    });
  };
  t.event_wait = [](void*, void* stream, void* event) -> tn_status* {
    return guard([&]() -> Status {
      static_cast<Stream*>(stream)->wait(*static_cast<EventHandle*>(event));
      return {};
    });
  };
  t.event_sync = [](void*, void* event, uint64_t timeout_ns) -> tn_status* {
    return guard([&] { return (*static_cast<EventHandle*>(event))->wait(timeout_ns); });
  };
  t.event_free = [](void*, void* event) { delete static_cast<EventHandle*>(event); };
  t.copy = copy;
  t.state_new = [](void*, int32_t, void** out) -> tn_status* {
    *out = nullptr;
    return guard([&]() -> Status {
      *out = new DeviceState;
      return {};
    });
  };
  t.state_free = [](void*, void* state) { delete static_cast<DeviceState*>(state); };
  t.state_set = state_set;
  t.state_get = state_get;
  return t;
}

}  // namespace tenon::fakedev

TENON_BACKEND(fakedev,
              tenon::fakedev::FakeDevice,
              "fakedev",
              "a device that is not there: own addresses, delayed streams, errors on events",
              R"({"properties": {
  "delay_us": {"type": "integer", "default": 200, "minimum": 0,
               "description": "how late a stream runs each piece of work"},
  "fail_at": {"type": "integer", "default": -1,
              "description": "the run of each part, from 0, that fails on the device"}}})")

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backend of one fake device. There are two, so that tests can pass values between devices.

#include "tenon/sdk/backend/device.hpp"

#include "executable.hpp"

namespace tenon::fakedev {

class FakeDevice {
 public:
  static Result<FakeDevice> create(tn_ctx* ctx, const Options& options);

  Status devices(Sink& out);
  Status prepare(Sink&) { return {}; }
  Status claim(const tn_graph* graph, int32_t device, const tn_claims& claims);
  Result<void*> compile(const tn_graph* part, int32_t device, const Options& options);
  uint64_t workspace(void*) { return 0; }
  Status run(void* exe,
             void* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec);
  void exe_free(void* exe);
  Status describe(void*, Sink& out) { return out.write("{\"device\": \"fake\"}"); }
  Status profile(void* exe, Sink& out);

  static tn_backend table() { return with_memory<FakeDevice>(); }

  // What backend/device.hpp and backend/states.hpp make functions of the table.
  Result<void*> alloc(int32_t, uint64_t bytes) { return memory().alloc(bytes); }
  Status free(int32_t, void* block, EventHandle* after);
  Status copy(const DLTensor& src, DLTensor& dst, const tn_exec& exec);
  Result<Stream*> new_stream(int32_t) { return new Stream(delay_us_); }
  void free_stream(Stream* stream) { delete stream; }
  void* native_stream(Stream*, std::string_view) { return nullptr; }
  Result<EventHandle*> record(Stream* stream) { return new EventHandle(stream->record()); }
  Status wait(Stream* stream, EventHandle* event);
  Status sync(EventHandle* event, uint64_t timeout_ns) { return (*event)->sync(timeout_ns); }
  void free_event(EventHandle* event) { delete event; }
  Result<DeviceState*> new_state(int32_t) { return new DeviceState; }

 protected:
  FakeDevice(tn_ctx* ctx, const Options& options, int unit)
      : ctx_(ctx), delay_us_(options.integer("delay_us", 200)), unit_(unit) {}
  // The functions of a device with an address space, streams and state of its own.
  template <class Unit>
  static tn_backend with_memory() {
    tn_backend t = BackendRole<Unit>::cpu_table();
    backend::add_device<Unit, Stream, EventHandle>(t);
    backend::add_states<Unit, DeviceState>(t);
    return t;
  }

 private:
  // Memory is one for the process, as a device's is: components come and go.
  Memory& memory() const;

  tn_ctx* ctx_;
  int64_t delay_us_;
  int unit_;
};

}  // namespace tenon::fakedev

// A literal, because it becomes part of the description that is read from the file.
#define TENON_FAKEDEV_SCHEMA                                                              \
  "{\"properties\": {"                                                                    \
  "\"delay_us\": {\"type\": \"integer\", \"default\": 200, \"minimum\": 0, "              \
  "\"description\": \"how late a stream runs each piece of work\"}, "                     \
  "\"fail_at\": {\"type\": \"integer\", \"default\": -1, "                                \
  "\"description\": \"the run of each part, from 0, that fails on the device\"}, "        \
  "\"compile_gate\": {\"type\": \"string\", \"default\": \"\", "                          \
  "\"description\": \"a FIFO: while it is there, compile waits for who writes to it\"}, " \
  "\"input_stream\": {\"type\": \"integer\", \"default\": 0, \"minimum\": 0, "            \
  "\"description\": \"for who hands inputs over: there is nothing to wait for here\"}}}"

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backend of one fake device. There are two, so that tests can pass values between devices.

#include "tenon/sdk/role/backend.hpp"

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

  static tn_backend table() { return with_memory(BackendRole<FakeDevice>::cpu_table()); }

 protected:
  FakeDevice(tn_ctx* ctx, const Options& options, int unit)
      : ctx_(ctx), delay_us_(options.integer("delay_us", 200)), unit_(unit) {}
  // The functions of a device with an address space, streams and state of its own.
  static tn_backend with_memory(tn_backend cpu_table);

 private:
  // Memory is one for the process, as a device's is: components come and go.
  Memory& memory() const;
  static FakeDevice& of(void* self) { return object_of<FakeDevice>(self); }
  static tn_status* alloc(void* self, int32_t, uint64_t bytes, void** out);
  static void free(void* self, int32_t, void* block, void* after_event);
  static tn_status* copy(void* self, const DLTensor* src, DLTensor* dst, const tn_exec* exec);
  static tn_status* state_set(void*, void* state, tn_str name, const DLTensor* value);
  static tn_status* state_get(void*, void* state, tn_str name, DLTensor* out);
  static void fill_streams(tn_backend& t);
  static void fill_state(tn_backend& t);

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

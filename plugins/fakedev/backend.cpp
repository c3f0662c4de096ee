// SPDX-License-Identifier: Apache-2.0
#include "backend.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>

#include "tenon/sdk/trace.hpp"

namespace tenon::fakedev {
namespace {

constexpr uint64_t kMemoryBytes = 64 << 20;

struct Compiled {
  std::unique_ptr<Executable> exe;
  int64_t fail_at = -1;
  std::atomic<int64_t> runs{0};
  bool declines = false;  // when it runs
};

// The name of a node with this scope; empty where there is none.
std::string node_of_scope(const tn_graph* part, std::string_view scope) {
  for (Node node : Graph{part}.nodes())
    if (node.scope() == scope) return std::string(node.name());
  return {};
}

// A compiler that takes its time: while the FIFO is there, until somebody opens its other end.
void wait_at(const std::string& gate) {
  if (!gate.empty()) std::ifstream(gate).get();
}

}  // namespace

Memory& FakeDevice::memory() const {
  static std::array<Memory, 2> units{Memory(62, kMemoryBytes), Memory(61, kMemoryBytes)};
  return units[static_cast<size_t>(unit_)];
}

Result<FakeDevice> FakeDevice::create(tn_ctx* ctx, const Options& options) {
  return FakeDevice(ctx, options, 0);
}

// The second device stands behind one that cannot be used.
Status FakeDevice::devices(Sink& out) {
  std::string taken =
      cat("{\"id\": 0, \"type\": ", kDLExtDev, ", \"why\": \"it is the first's\"}, ");
  return out.write(cat("[", unit_ ? taken : "", "{\"id\": ", unit_, ", \"type\": ", kDLExtDev,
                       ", \"name\": \"a device that is not there\", \"memory_bytes\": ",
                       memory().limit(), ", \"live_blocks\": ", memory().live_blocks(), "}]"));
}

Status FakeDevice::claim(const tn_graph* graph, int32_t device, const tn_claims& claims) {
  if (device != unit_) return invalid(cat("expected device ", unit_, ", got ", device));
  for (Node node : Graph{graph}.nodes()) {
    const tn_op* row = node.row();
    if (!row || row->traits & TN_OP_CONTROL) {
      claims.refuse(claims.ctx, node.id, str("no kernel on this device"));
    } else if (node.scope() == "cpu" || (unit_ == 0 && node.scope() == "second")) {
      claims.refuse(claims.ctx, node.id, str(cat("its scope is ", node.scope())));
    } else {
      claims.take(claims.ctx, &node.id, 1);
    }
  }
  return {};
}

Result<void*> FakeDevice::compile(const tn_graph* part, int32_t, const Options& options) {
  wait_at(options.text("compile_gate", ""));
  if (std::string node = node_of_scope(part, "uncompilable"); !node.empty())
    return Status(TN_INTERNAL, cat("no code for node ", node, ": its scope is uncompilable"));
  if (!node_of_scope(part, "declined").empty()) return unsupported("declined when it is compiled");
  TN_TRY(exe, Executable::compile(ctx_, part, &memory()));
  auto* compiled = new Compiled;
  compiled->declines = !node_of_scope(part, "declined late").empty();
  compiled->exe = std::move(exe);
  compiled->fail_at = options.integer("fail_at", -1);
  return static_cast<void*>(compiled);
}

Status FakeDevice::run(void* exe,
                       void* state,
                       const DLTensor* const* in,
                       uint64_t n_in,
                       const tn_outputs* outputs,
                       const tn_exec* exec) {
  auto* compiled = static_cast<Compiled*>(exe);
  if (compiled->declines) return unsupported("declined when it runs");
  bool fail = compiled->runs.fetch_add(1) == compiled->fail_at;
  return compiled->exe->run(static_cast<DeviceState*>(state), in, n_in, outputs, exec, fail);
}

void FakeDevice::exe_free(void* exe) {
  delete static_cast<Compiled*>(exe);
}

Status FakeDevice::profile(void* exe, Sink& out) {
  return out.write(static_cast<Compiled*>(exe)->exe->profile());
}

Status FakeDevice::free(int32_t, void* block, EventHandle* after) {
  if (after) Status ignored = (*after)->wait(UINT64_MAX);
  memory().free(block);
  return {};
}

Status FakeDevice::wait(Stream* stream, EventHandle* event) {
  stream->wait(*event);
  return {};
}

Status FakeDevice::copy(const DLTensor& src, DLTensor& dst, const tn_exec& exec) {
  for (const DLTensor* side : {&src, const_cast<const DLTensor*>(&dst)}) {
    if (side->device.device_type != kDLCPU) TN_CHECK(memory().check(*side));
  }
  uint64_t bytes = bytes_of(dtype_of(src), element_count(src));
  auto work = [ctx = ctx_, to = Memory::to_host(dst), from = Memory::to_host(src),
               bytes]() -> Status {
    Span span(ctx, "device", "copy");
    if (bytes > 0) std::memcpy(to, from, bytes);  // an empty tensor may have no memory
    return {};
  };
  return enqueue(exec, work);
}

}  // namespace tenon::fakedev

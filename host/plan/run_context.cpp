// SPDX-License-Identifier: Apache-2.0
// The memory of a run in flight: an arena for what lives on the CPU and a workspace, which runs of
// a plan take turns with; blocks on devices; the tensors over them.
#include <cstdlib>

#include "memory/free_memory.hpp"
#include "plan/plan.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

Status no_memory(uint64_t bytes, std::string_view what) {
  return {TN_RESOURCE_EXHAUSTED, cat(what, ": ", no_memory_text(bytes))};
}

// Which value takes most, and the node that makes it.
std::string largest_value(const tn_graph& graph) {
  uint64_t most = 0;
  std::string out;
  for (tn_node_id id : graph.tables->order) {
    const Node& node = *graph.tables->nodes.find(id);
    for (tn_value_id output : node.outputs) {
      const Value* value = graph.tables->values.find(output);
      if (!value || value->type->rank == TN_RANK_UNKNOWN) continue;
      Result<uint64_t> bytes = dense_bytes(value->type->dtype, value->type->dims);
      if (!bytes.ok() || *bytes <= most) continue;
      most = *bytes;
      out = cat("node ", *node.name, " makes value ", *value->name, " of ", most, " bytes");
    }
  }
  return out;
}

}  // namespace

std::vector<int64_t> dense_layout(std::span<const int64_t> dims) {
  std::vector<int64_t> layout(dims.begin(), dims.end());
  std::vector<int64_t> strides = dense_strides(dims);
  layout.insert(layout.end(), strides.begin(), strides.end());
  return layout;
}

RunContext::RunContext(Compiled* of) : compiled(of) {
  size_t n = of->slots.size();
  tensors.resize(n);
  dynamic_dims.resize(n);
  owned.resize(n);
  owned_bytes.resize(n);
  queues.resize(of->plan->backends.size());
  ready.resize(n);
  size_t most = 0;
  for (const Step& step : of->steps)
    most = std::max(most, step.in.size());
  arguments.reserve(most);
}

RunContext::~RunContext() {
  for (size_t i = 0; i < owned.size(); ++i) {
    int space = compiled->slots[i].space;
    if (!owned[i]) continue;
    if (space == kCpuSpace) {
      std::free(owned[i]);
    } else {
      BackendUse& use = *compiled->plan->backends[space];
      use.table->free(use.self, use.device, owned[i], nullptr);
    }
  }
  for (size_t b = 0; b < queues.size(); ++b) {
    BackendUse& use = *compiled->plan->backends[b];
    for (void* stream : queues[b].streams)
      if (stream) use.table->stream_free(use.self, stream);
  }
  end();
}

Status reserve(RunContext& context, int slot, uint64_t bytes) {
  int space = context.compiled->slots[slot].space;
  const std::string& name = context.compiled->slots[slot].name;
  void* memory = nullptr;
  if (space == kCpuSpace) {
    memory = aligned_memory(bytes);
    if (!memory) return no_memory(bytes, cat("value ", name));
    std::free(context.owned[slot]);
  } else {
    BackendUse& use = *context.compiled->plan->backends[space];
    Status got = use.called("alloc", use.table->alloc(use.self, use.device, bytes, &memory));
    if (!got.ok()) return std::move(got).in(cat("memory for value ", name, " on ", use.id));
    if (context.owned[slot]) use.table->free(use.self, use.device, context.owned[slot], nullptr);
  }
  context.owned[slot] = memory;
  context.owned_bytes[slot] = bytes;
  return {};
}

Status RunContext::begin() {
  at = nullptr;
  const uint64_t before_workspace = aligned_bytes(compiled->arena_bytes);
  const uint64_t bytes = before_workspace + compiled->workspace_bytes;
  if (bytes == 0) return {};
  memory = compiled->plan->kept->memory.take(bytes);
  if (!memory.data)
    return no_memory(
        bytes, cat("the plan's arena and workspace: ", largest_value(*compiled->graph.get())));
  workspace = memory.data + before_workspace;
  if (arena == memory.data) return {};
  arena = memory.data;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (int64_t offset = compiled->slots[i].offset; offset >= 0) tensors[i].data = arena + offset;
  return {};
}

void RunContext::end() {
  if (memory.data) compiled->plan->kept->memory.give_back(std::exchange(memory, {}));
}

Status RunContext::prepare() {
  for (size_t b = 0; b < queues.size(); ++b) {
    BackendUse& use = *compiled->plan->backends[b];
    if (!use.own_memory) continue;
    for (void*& stream : queues[b].streams)
      TN_CHECK(use.called("stream_new", use.table->stream_new(use.self, use.device, &stream)));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    Slot& slot = compiled->slots[i];
    if (slot.constant) {
      tensors[i] = slot.constant->dl;
      continue;
    }
    if (!slot.is_static || slot.input >= 0 || slot.output >= 0 || slot.state >= 0) continue;
    void* data = nullptr;  // begin() says, for what lies in the arena
    DLDevice device{kDLCPU, 0};
    if (slot.space != kCpuSpace) {
      TN_CHECK(reserve(*this, static_cast<int>(i), std::max<uint64_t>(slot.bytes, 1)));
      data = owned[i];
      device = compiled->plan->backends[slot.space]->dl;
    }
    int32_t rank = static_cast<int32_t>(slot.dims.size() / 2);
    tensors[i] = {
        data, device, rank, dl_type(slot.dtype), slot.dims.data(), slot.dims.data() + rank, 0};
  }
  return {};
}

Compiled::~Compiled() {
  idle.clear();
  if (plan && plan->kept) {
    std::lock_guard lock(plan->kept->mutex);
    if (plan->kept->latest == this) plan->kept->latest = nullptr;
  }
}

}  // namespace tenon::host

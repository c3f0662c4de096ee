// SPDX-License-Identifier: Apache-2.0
// The memory of a run in flight: one arena for what lives on the CPU, blocks on devices, and the
// tensors over them.
#include <cstdlib>

#include "plan/arena.hpp"
#include "plan/plan.hpp"
#include "values/large_pages.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {

char* aligned_memory(uint64_t bytes) {
  uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
  auto* memory = static_cast<char*>(std::aligned_alloc(kArenaAlign, rounded));
  prefer_large_pages(memory, rounded);
  return memory;
}

namespace {

Status no_memory(uint64_t bytes, std::string_view what) {
  return {TN_RESOURCE_EXHAUSTED, cat("out of memory: ", bytes, " bytes for ", what)};
}

// Which value takes most, and the node that makes it.
std::string largest_value(const tn_graph* graph) {
  const tn_host_graph& g = *graph_service();
  uint64_t most = 0;
  std::string out;
  for (uint64_t n = 0, count = g.count(graph, TN_LIST_NODES); n < count; ++n) {
    tn_node_id node = g.node_at(graph, n);
    for (uint64_t i = 0, m = g.io_count(graph, node, TN_LIST_OUTPUTS); i < m; ++i) {
      tn_value_id value = g.io_at(graph, node, TN_LIST_OUTPUTS, i);
      tn_type type{};
      type.struct_size = sizeof type;
      if (!value || !Status(g.value_type(graph, value, &type)).ok()) continue;
      if (type.rank == TN_RANK_UNKNOWN) continue;
      Result<uint64_t> bytes = dense_bytes(type.dtype, {type.dims, type.rank});
      if (!bytes.ok() || *bytes <= most) continue;
      most = *bytes;
      out = cat("node ", view(g.node_name(graph, node)), " makes value ",
                view(g.value_name(graph, value)), " of ", most, " bytes");
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
  States& kept = *compiled->plan->kept;
  kept.give(States::kArena, arena, arena_bytes);
  kept.give(States::kWorkspace, workspace, workspace_bytes);
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
    if (!got.ok()) {
      int32_t code = got.code();
      return {code, cat("memory for value ", name, " on ", use.id), "host", std::move(got)};
    }
    if (context.owned[slot]) use.table->free(use.self, use.device, context.owned[slot], nullptr);
  }
  context.owned[slot] = memory;
  context.owned_bytes[slot] = bytes;
  return {};
}

Status RunContext::prepare() {
  States& kept = *compiled->plan->kept;
  arena_bytes = compiled->arena_bytes;
  if (arena_bytes && !(arena = kept.take(States::kArena, &arena_bytes))) {
    return no_memory(compiled->arena_bytes,
                     cat("the plan's arena: ", largest_value(compiled->graph.get())));
  }
  workspace_bytes = compiled->workspace_bytes;
  if (workspace_bytes && !(workspace = kept.take(States::kWorkspace, &workspace_bytes))) {
    return no_memory(compiled->workspace_bytes,
                     cat("the plan's workspace: ", largest_value(compiled->graph.get())));
  }
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
    void* memory = slot.offset >= 0 ? arena + slot.offset : nullptr;
    DLDevice device{kDLCPU, 0};
    if (slot.space != kCpuSpace) {
      TN_CHECK(reserve(*this, static_cast<int>(i), std::max<uint64_t>(slot.bytes, 1)));
      memory = owned[i];
      device = compiled->plan->backends[slot.space]->dl;
    }
    int32_t rank = static_cast<int32_t>(slot.dims.size() / 2);
    tensors[i] = {
        memory, device, rank, dl_type(slot.dtype), slot.dims.data(), slot.dims.data() + rank, 0};
  }
  return {};
}

Compiled::~Compiled() {
  idle.clear();
  if (plan && plan->kept && plan->kept->latest == this) plan->kept->latest = nullptr;
  for (Step& step : steps) {
    if (step.exe) {
      BackendUse& use = *plan->backends[step.backend];
      use.table->exe_free(use.self, step.exe);
    }
  }
}

}  // namespace tenon::host

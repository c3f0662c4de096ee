// SPDX-License-Identifier: Apache-2.0
// From a graph and the shapes of its inputs to steps over slots.
#include <unordered_map>

#include "graph/op_table.hpp"
#include "memory/arena.hpp"
#include "plan/assumptions.hpp"
#include "plan/bind.hpp"
#include "plan/open_sizes.hpp"
#include "plan/partition.hpp"
#include "plan/plan.hpp"
#include "services/log.hpp"
#include "sizes/alike.hpp"
#include "sizes/seen_sizes.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

bool is_static(const tn_type& type) {
  if (type.rank == TN_RANK_UNKNOWN || type.dtype == TN_DTYPE_NONE) return false;
  for (uint32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] < 0) return false;
  }
  return true;
}

class Builder {
 public:
  Builder(tn_plan* plan, Compiled* out) : plan_(plan), out_(out) {}

  Status build(bool spares_constants) {
    TN_CHECK(add_inputs());
    TN_TRY(partitions, compile_partitions(out_, spares_constants));
    for (CompiledPartition& one : partitions) {
      if (one.partition.is_late())
        TN_CHECK(add_late(one));
      else
        TN_CHECK(one.exe ? add_partition(one) : add_control(one.partition));
    }
    TN_CHECK(add_outputs());
    for (Slot& slot : out_->slots)
      if (slot.input < 0 && !slot.constant && slot.first_step == SIZE_MAX) slot.first_step = 0;
    return lay_out_arena();
  }

 private:
  // The slot of a value at a space; makes it, and the copies that bring it there.
  int slot_at(tn_value_id value, int space) {
    auto found = slots_.find({value, space});
    if (found != slots_.end()) return found->second;
    if (space == kCpuSpace) {
      if (tn_tensor* constant = g().constant(out_->graph.get(), value)) {
        int slot = new_slot(value, space);
        out_->slots[slot].constant = Ref<tn_tensor>::share(constant);
        return slot;
      }
    }
    int from = kCpuSpace;
    for (int b = 0; b < static_cast<int>(plan_->backends.size()); ++b) {
      if (slots_.count({value, b})) from = b;
    }
    // Between two devices a value goes through the CPU.
    int source = slot_at(value, from == kCpuSpace || space == kCpuSpace ? from : kCpuSpace);
    int slot = new_slot(value, space);
    Step copy;
    copy.kind = StepKind::kCopy;
    copy.backend = space == kCpuSpace ? from : space;
    copy.in = {source};
    copy.out = {slot};
    copy.names = {out_->slots[slot].name};
    copy.label = cat(copy.names[0], space == kCpuSpace ? " from " : " to ",
                     plan_->backends[copy.backend]->id);
    add_step(std::move(copy));
    ++out_->copies;
    return slot;
  }

  bool is_there(tn_value_id value) const {
    if (g().constant(out_->graph.get(), value) || kept_.contains(value)) return true;
    for (int space = kCpuSpace; space < static_cast<int>(plan_->backends.size()); ++space)
      if (slots_.contains({value, space})) return true;
    return false;
  }

  int new_slot(tn_value_id value, int space) {
    Slot slot;
    slot.name = view(g().value_name(out_->graph.get(), value));
    slot.space = space;
    slot.first_step = SIZE_MAX;
    tn_type type = type_of(out_->graph.get(), value);
    bool packed = type.kind != TN_KIND_TENSOR;  // a sequence or optional: bytes, by abi/lists.md
    slot.dtype = packed ? TN_U8 : type.dtype;
    slot.is_static = !packed && is_static(type);
    if (slot.is_static) {
      slot.dims = dense_layout({type.dims, type.rank});
      Result<uint64_t> bytes = dense_bytes(type.dtype, {type.dims, type.rank});
      slot.is_static = bytes.ok();  // what does not fit will fail when it runs
      if (bytes.ok()) slot.bytes = *bytes;
    }
    int index = static_cast<int>(out_->slots.size());
    out_->slots.push_back(std::move(slot));
    slots_[{value, space}] = index;
    return index;
  }

  void add_step(Step step) {
    size_t index = out_->steps.size();
    for (int slot : step.in) {
      if (slot >= 0) out_->slots[slot].last_step = index;
    }
    for (int slot : step.out) {
      out_->slots[slot].first_step = std::min(out_->slots[slot].first_step, index);
      out_->slots[slot].last_step = std::max(out_->slots[slot].last_step, index);
    }
    out_->workspace_bytes = std::max(out_->workspace_bytes, step.workspace);
    out_->steps.push_back(std::move(step));
  }

  Status add_inputs() {
    int64_t given = 0;
    for (tn_value_id value : tables().inputs) {
      Slot& slot = out_->slots[new_slot(value, kCpuSpace)];
      slot.state = state_of(out_->graph.get(), value, 0);
      if (slot.state < 0) slot.input = given++;
    }
    return {};
  }

  Status add_partition(CompiledPartition& compiled) {
    const Partition& partition = compiled.partition;
    BackendUse& use = *plan_->backends[partition.backend];
    Step step;
    step.backend = partition.backend;
    step.has_state = use.table->state_new && g().count(compiled.graph.get(), TN_LIST_STATES) > 0;
    TN_CHECK(connect(compiled.graph.get(), use.own_memory ? partition.backend : kCpuSpace, &step));
    step.workspace = use.table->workspace(use.self, compiled.exe.get());
    set_names(partition, use.id, &step);
    step.exe = std::move(compiled.exe);
    add_step(std::move(step));
    return {};
  }

  void set_names(const Partition& partition, std::string_view who, Step* step) const {
    for (tn_node_id node : partition.nodes)
      step->names.emplace_back(view(g().node_name(out_->graph.get(), node)));
    step->label = cat(who, ": ", step->names[0]);
    if (step->names.size() > 1) step->label += cat(" and ", step->names.size() - 1, " more");
  }

  Status add_late(const CompiledPartition& late) {
    Step step;
    step.kind = StepKind::kLate;
    TN_CHECK(connect(late.graph.get(), kCpuSpace, &step));
    set_names(late.partition, "late sizes", &step);
    TN_TRY(plan, late_plan(late.graph.get()));
    step.bodies.emplace_back("", plan);
    add_step(std::move(step));
    return {};
  }

  // Layers that are alike have one plan, which compiles once for all of them.
  Result<Ref<tn_plan>> late_plan(const tn_graph* graph) {
    for (const Ref<tn_plan>& plan : late_plans_)
      if (are_alike(*plan->graph.get(), *graph)) return plan;
    TN_TRY(plan, make_plan(plan_->ctx, graph, {}, plan_->options_text));
    return late_plans_.emplace_back(plan);
  }

  // The partition's inputs and outputs as slots, by name. What the backend keeps as state is
  // neither.
  Status connect(const tn_graph* sub, int space, Step* step) {
    for (uint32_t which : {TN_LIST_INPUTS, TN_LIST_OUTPUTS}) {
      for (uint64_t i = 0, n = g().count(sub, which); i < n; ++i) {
        tn_value_id theirs = g().value_at(sub, which, i, 0);
        tn_str name = g().value_name(sub, theirs);
        tn_value_id ours = g().find_value(out_->graph.get(), name);
        if (!ours) return {TN_INTERNAL, cat("extract lost value ", view(name))};
        if (which == TN_LIST_INPUTS && !is_there(ours))
          return {TN_INTERNAL, cat("value ", view(name), " is read before it is made")};
        if (step->has_state && is_state(sub, theirs, which == TN_LIST_INPUTS ? 0 : 1)) {
          kept_[ours] = step->backend;
        } else if (which == TN_LIST_INPUTS) {
          step->in.push_back(slot_at(ours, space));
        } else {
          step->out.push_back(new_slot(ours, space));
        }
      }
    }
    return {};
  }

  Status add_control(const Partition& partition) {
    Step step;
    step.kind = StepKind::kControl;
    step.node = partition.nodes[0];
    step.row = op_service()->of(out_->graph.get(), step.node);
    const Node& node = *tables().nodes.find(step.node);
    step.names = {*node.name};
    step.label = *node.name;
    for (const NamedAny& attr : node.attrs) {
      const tn_graph* body = graph_in(attr.value->get());
      if (!body) continue;
      TN_TRY(plan, make_plan(plan_->ctx, body, {}, plan_->options_text));
      plan->is_body = true;
      step.bodies.emplace_back(attr.name, plan);
    }
    for (tn_value_id value : node.inputs)
      step.in.push_back(value ? slot_at(value, kCpuSpace) : -1);
    for (tn_value_id value : node.outputs)
      step.out.push_back(new_slot(value, kCpuSpace));
    add_step(std::move(step));
    return {};
  }

  // The first mention of a value as an output, when a step makes it on the CPU, is written straight
  // into the caller's memory; what remains is copied at the end of the run.
  Status add_outputs() {
    for (const Output& output : tables().outputs) {
      if (is_state(out_->graph.get(), output.value, 1)) continue;
      int slot = slot_at(output.value, kCpuSpace);
      Slot& s = out_->slots[slot];
      if (s.output < 0 && s.input < 0 && s.state < 0 && !s.constant)
        s.output = static_cast<int64_t>(out_->outputs.size());
      out_->outputs.push_back(slot);
    }
    for (size_t i = 0; i < tables().states.size(); ++i) {
      tn_value_id value = tables().states[i].second;
      auto kept = kept_.find(value);
      bool is_kept = kept != kept_.end();
      out_->state_keepers.push_back(is_kept ? kept->second : kCpuSpace);
      out_->state_results.push_back(is_kept ? -1 : slot_at(value, kCpuSpace));
      if (is_kept) continue;
      Slot& s = out_->slots[out_->state_results.back()];
      s.last_step = out_->steps.size();  // read when the run ends
      if (s.is_intermediate()) s.next_state = static_cast<int64_t>(i);
    }
    return {};
  }

  Status lay_out_arena() {
    std::vector<ArenaBlock> blocks;
    std::vector<Slot*> owners;
    for (Slot& slot : out_->slots) {
      if (!slot.is_intermediate()) continue;
      blocks.push_back({slot.bytes, slot.first_step, slot.last_step, 0});
      owners.push_back(&slot);
    }
    TN_TRY(size, place_blocks(blocks));
    out_->arena_bytes = size.bytes;
    for (size_t i = 0; i < blocks.size(); ++i)
      owners[i]->offset = int64_t(blocks[i].offset);
    return {};
  }

  const Tables& tables() const { return *out_->graph->tables; }

  struct KeyHash {
    size_t operator()(const std::pair<tn_value_id, int>& key) const {
      return std::hash<uint64_t>()(key.first * 31 + static_cast<uint64_t>(key.second + 1));
    }
  };
  tn_plan* plan_;
  Compiled* out_;
  std::unordered_map<std::pair<tn_value_id, int>, int, KeyHash> slots_;
  // Inputs and new values of states that a backend keeps.
  std::unordered_map<tn_value_id, int> kept_;
  std::vector<Ref<tn_plan>> late_plans_;
};

// Sizes that are taken for fixed become numbers where they are read, as long as runs check them.
Status fix_seen_sizes(tn_plan* plan, const OpenSizes& open, Ref<tn_graph>* graph) {
  TN_CHECK(
      declare_seen_sizes(graph->get(), {open.seen[0]->graph.get(), open.seen[1]->graph.get()}));
  tn_graph* raw = nullptr;
  TN_CHECK(Status(g().clone(graph->get(), &raw)));
  Ref<tn_graph> folded = Ref<tn_graph>::take(raw);
  TN_CHECK(run_passes(*plan, raw));
  if (checks_seen_sizes(*graph->get(), *raw)) *graph = std::move(folded);
  return {};
}

// open: which sizes may change, or NULL. *again: it failed after a backend had discarded constants,
// which the next ones have not seen.
Result<CompiledRef> compile_once(
    tn_plan* plan, Inputs in, const OpenSizes* open, bool spares_constants, bool* again) {
  auto compiled = std::make_shared<Compiled>();
  compiled->plan = plan;
  compiled->is_open = open != nullptr;
  {
    std::lock_guard lock(plan->mutex);
    compiled->compiled_under = plan->assumptions;
  }
  TN_TRY(bound, bind_shapes(plan, in, compiled->compiled_under, &compiled->key));
  compiled->graph = std::move(bound);
  if (open) TN_CHECK(fix_seen_sizes(plan, *open, &compiled->graph));
  Status built = Builder(plan, compiled.get()).build(spares_constants);
  *again = !built.ok() && has_discarded_constants(*compiled->graph.get());
  TN_CHECK(std::move(built));
  compiled->rests_on_declared =
      !open && compiled->compiled_under.trusts_declared && trusts_declared(*compiled->graph.get());
  // Slots and executables hold what they read; weights that are packed by now go.
  compiled->graph = Ref<tn_graph>::take(without_constants(*compiled->graph.get()));
  return compiled;
}

// NULL: it does not pay, or not everything can be compiled so.
CompiledRef compile_open(tn_plan* plan, Inputs in) {
  std::optional<OpenSizes> open = open_sizes_for(plan, in);
  if (!open) return nullptr;
  std::vector<DLTensor> tensors;
  for (std::vector<int64_t>& one : open->shapes)
    tensors.push_back({nullptr,
                       {kDLCPU, 0},
                       static_cast<int32_t>(one.size() - 1),
                       dl_type(static_cast<uint32_t>(one[0])),
                       one.data() + 1,
                       nullptr,
                       0});
  std::vector<const DLTensor*> inputs;
  for (const DLTensor& tensor : tensors)
    inputs.push_back(&tensor);
  bool again = false;
  Result<CompiledRef> made = compile_once(plan, inputs, &*open, false, &again);
  if (made.ok()) return *made;
  if (made.status().code() != TN_UNIMPLEMENTED)
    log_service()->write(plan->ctx, TN_LOG_WARNING,
                         str(cat("sizes that change are not left open: ", made.status().text())));
  std::lock_guard lock(plan->mutex);
  plan->never_open.push_back(open->shapes);
  return nullptr;
}

}  // namespace

Result<CompiledRef> compile_for(tn_plan* plan, Inputs in, bool may_open) {
  if (CompiledRef open = may_open ? compile_open(plan, in) : nullptr) return open;
  bool again = false;
  auto made = compile_once(plan, in, nullptr, true, &again);
  if (!again) return made;
  return compile_once(plan, in, nullptr, false, &again);
}

}  // namespace tenon::host

// SPDX-License-Identifier: Apache-2.0
// The service "tenon.host.eval/1": making plans, choosing the specialization for the shapes at
// hand, and describing a plan.
#include <algorithm>
#include <mutex>
#include <span>

#include <nlohmann/json.hpp>

#include "graph/edit.hpp"
#include "plan/assumptions.hpp"
#include "plan/bind.hpp"
#include "plan/partition.hpp"
#include "plan/plan.hpp"
#include "services/boundary.hpp"
#include "services/trace.hpp"
#include "values/json_any.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

using nlohmann::json;

// Specializations that are kept. On the CPU they share the memory of runs; on a device each has its
// own.
constexpr size_t kMostSpecializations = 64, kMostOnDevices = 8;

Status add_taps(tn_plan* plan, std::span<const tn_value_id> taps) {
  if (taps.empty()) return {};
  plan->assumptions.warned_of_outputs = true;  // a pass may have changed declared types inside
  for (size_t i = 0; i < taps.size(); ++i)
    if (is_state(plan->graph.get(), taps[i], 1))
      return invalid(cat("tap ", i, ": ", view(g().value_name(plan->graph.get(), taps[i])),
                         " becomes a state, which stays with the plan: tap an Identity of it"));
  TN_TRY(edit, begin_edit(plan->graph.get()));
  uint64_t number = 0;  // of a name that no output has
  for (tn_value_id tap : taps) {
    Status added;
    do
      added = edit->add_output(cat("tap", number++), tap);
    while (added.code() == TN_ALREADY_EXISTS);
    TN_CHECK(std::move(added));
  }
  return edit->commit();
}

// Right number, dense, on the CPU or a device of the plan: what a run takes as it is.
Status check_inputs(tn_plan* plan, Inputs in) {
  const tn_host_graph& g = *graph_service();
  uint64_t wanted = g.count(plan->graph.get(), TN_LIST_INPUTS) - plan->states.size();
  if (in.size() != wanted) return invalid(cat("expected ", wanted, " inputs, got ", in.size()));
  for (uint64_t i = 0; i < in.size(); ++i) {
    DLDevice at = in[i]->device;
    TN_TRY(bytes, dense_bytes(dtype_of(in[i]->dtype), dims_of(*in[i])));
    if (bytes > 0 && !in[i]->data) return invalid(cat("input ", i, ": expected data, got NULL"));
    if (at.device_type != kDLCPU && !plan->backend_at(at)) {
      return invalid(cat("input ", i, ": expected a tensor on the CPU or on a device of the plan, ",
                         "got device type ", at.device_type, " id ", at.device_id));
    }
    if (!is_dense(*in[i]))
      return invalid(cat("input ", i,
                         ": expected a dense tensor, got strides; "
                         "tn_host_tensor.copy makes a dense one"));
  }
  return {};
}

tn_status* compile(tn_ctx* ctx,
                   const tn_graph* graph,
                   const tn_value_id* taps,
                   uint64_t n_taps,
                   tn_str options,
                   tn_plan** out) {
  return guarded_out(out, [&] { return make_plan(ctx, graph, {taps, n_taps}, view(options)); });
}

Ref<tn_plan> new_plan(tn_ctx* ctx, const tn_graph* graph) {
  Ref<tn_plan> plan = Ref<tn_plan>::take(new tn_plan);
  plan->ctx = ctx;
  ctx->add(Held::kPlan, 1);
  plan->graph = Ref<tn_graph>::take(clone(*graph));
  if (graph_service()->count(graph, TN_LIST_OUTPUTS) > 0)
    plan->label = view(graph_service()->io_name(graph, TN_LIST_OUTPUTS, 0));
  return plan;
}

tn_status* compile_beside(tn_plan* plan, const tn_graph* graph, tn_plan** out) {
  return guarded_out(out, [&]() -> Result<Ref<tn_plan>> {
    Ref<tn_plan> made = new_plan(plan->ctx, graph);
    made->options_text = plan->options_text;
    made->cache_limit = plan->cache_limit;
    made->kept = plan->kept;
    made->kept->is_common = true;
    for (const BackendUse& use : made->kept->backends)
      made->backends.push_back(std::make_unique<BackendUse>(use));
    TN_CHECK(make_states(made.get()));
    return made;
  });
}

tn_status* prepare(tn_plan* plan, const DLTensor* const* in, uint64_t n_in) {
  return guarded([&]() -> Status {
    TN_CHECK(check_inputs(plan, {in, n_in}));
    return specialization_for(plan, {in, n_in}).status();
  });
}

tn_status* run(tn_plan* plan,
               const DLTensor* const* in,
               uint64_t n_in,
               const tn_outputs* outputs,
               const tn_cancel* cancel) {
  return guarded([&] { return run_plan(plan, {{in, n_in}, outputs, cancel}); });
}

json partition_json(tn_plan* plan, const Step& step) {
  json partition = {{"nodes", step.names}};
  if (!step.bodies.empty()) {
    partition["backend"] = "host";
    return partition;
  }
  BackendUse& use = *plan->backends[step.backend];
  partition["backend"] = use.id;
  partition["workspace_bytes"] = step.workspace;
  partition.update(described(use, step.exe.get()));
  return partition;
}

tn_status* describe(tn_plan* plan, const tn_sink* sink) {
  return guarded([&]() -> Status {
    json out = {{"backends", json::array()},
                {"devices", json::array()},
                {"partitions", json::array()},
                {"fallback_nodes", json::array()}};
    for (bool is_joined : {false, true}) {  // the one that is preferred stands first
      for (const auto& use : plan->backends) {
        if (use->is_joined != is_joined) continue;
        out["backends"].push_back(use->id);
        out["devices"].push_back(use->about);
      }
    }
    for (const Fallback& f : fallbacks_of(plan))
      out["fallback_nodes"].push_back({{"node", f.node}, {"op", f.op}, {"why", f.why}});
    if (CompiledRef compiled = last_used(plan)) {
      for (const Step& step : compiled->steps) {
        if (step.kind != StepKind::kCopy) out["partitions"].push_back(partition_json(plan, step));
      }
      out["arena_bytes"] = compiled->arena_bytes;
      out["copies_per_run"] = compiled->copies;
    }
    std::string text = json_text(out);
    return Status(sink->write(sink->ctx, text.data(), text.size()));
  });
}

// Memory for outputs that are not read.
struct Scratch {
  tn_ctx* ctx;
  std::mutex mutex;  // backends ask from any thread
  std::vector<Ref<tn_tensor>> tensors;
  static tn_status* get(void* self, uint64_t, const DLTensor* proto, DLTensor* out) {
    auto& scratch = *static_cast<Scratch*>(self);
    return guarded([&]() -> Status {
      TN_TRY(made, alloc_tensor(scratch.ctx, dtype_of(proto->dtype), dims_of(*proto)));
      *out = made->dl;
      std::lock_guard lock(scratch.mutex);
      scratch.tensors.push_back(made);
      return {};
    });
  }
};

tn_status* profile(tn_plan* plan, const DLTensor* const* in, uint64_t n_in, const tn_sink* sink) {
  return guarded([&]() -> Status {
    Scratch scratch{plan->ctx, {}, {}};
    tn_outputs outputs{&scratch, Scratch::get};
    json layers = json::array();
    TN_CHECK(run_plan(plan, {{in, n_in}, &outputs, nullptr, &layers}));
    std::string text = json_text(layers);
    return Status(sink->write(sink->ctx, text.data(), text.size()));
  });
}

}  // namespace

Result<Ref<tn_plan>> make_plan(tn_ctx* ctx,
                               const tn_graph* graph,
                               std::span<const tn_value_id> taps,
                               std::string_view options_text) {
  TN_TRY(options, read_options(options_text));
  Ref<tn_plan> plan = new_plan(ctx, graph);
  plan->options_text = options_text;
  TN_CHECK(add_taps(plan.get(), taps));
  TN_TRY(backends, open_backends(ctx, options));
  plan->backends = std::move(backends);
  const bool on_devices =
      std::ranges::any_of(plan->backends, [](const auto& use) { return use->own_memory; });
  plan->cache_limit =
      options.cache_limit.value_or(on_devices ? kMostOnDevices : kMostSpecializations);
  plan->kept = std::make_shared<States>(plan->backends);
  TN_CHECK(make_states(plan.get()));
  // A specialization that trusts declared sizes needs passes of its own. In deterministic mode no
  // bit of a result may depend on which shapes came before.
  plan->shares_passes = plan->states.empty() && !options.rest.value("deterministic", false) &&
                        !trusts_declared(*plan->graph.get());
  if (plan->shares_passes) plan->symbols.emplace(*plan->graph.get());
  return plan;
}

Status run_plan(tn_plan* plan, const RunRequest& request) {
  TN_CHECK(check_inputs(plan, request.in));
  TN_TRY(compiled, specialization_for(plan, request.in));
  return run_or_recompile(plan, compiled, request);
}

const tn_host_eval* eval_service() {
  static const tn_host_eval table{
      sizeof table, 1,       compile,       prepare,        run,           state_set, state_get,
      describe,     profile, retain_object, release_object, compile_beside};
  return &table;
}

}  // namespace tenon::host

tn_plan::~tn_plan() {
  cache.clear();
  if (ctx) ctx->add(tenon::host::Held::kPlan, -1);
}

const tenon::host::BackendUse& tn_plan::preferred() const {
  return tenon::host::preferred_of(backends);
}

std::optional<int> tn_plan::backend_at(DLDevice device) const {
  for (size_t b = 0; b < backends.size(); ++b) {
    DLDevice dl = backends[b]->dl;
    bool is_there = dl.device_type == device.device_type && dl.device_id == device.device_id;
    if (is_there && backends[b]->own_memory) return static_cast<int>(b);
  }
  return {};
}

// SPDX-License-Identifier: Apache-2.0
// The service "tenon.host.eval/1": making plans, choosing the compiled form for the shapes at hand,
// and describing a plan.
#include <algorithm>
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "graph/edit.hpp"
#include "languages/option_schema.hpp"
#include "plan/lessons.hpp"
#include "plan/partition.hpp"
#include "plan/plan.hpp"
#include "registry/component.hpp"
#include "services/boundary.hpp"
#include "services/trace.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

using nlohmann::json;

// Forms that are kept. On the CPU they share the memory of runs; on a device each has its own.
constexpr size_t kForms = 64, kFormsOnDevices = 8;

struct PlanOptions {
  std::vector<std::string> backends;
  std::optional<size_t> cache_limit;
  json rest = json::object();  // for the backends
};

Result<PlanOptions> read_options(std::string_view text) {
  PlanOptions out;
  json given = text.empty() ? json::object() : json::parse(text, nullptr, false);
  if (!given.is_object()) return invalid("plan options: expected a JSON object");
  for (auto& [key, value] : given.items()) {
    if (key == "backend") {
      json list = value.is_array() ? value : json::array({value});
      for (const json& id : list) {
        if (!id.is_string()) return invalid("option backend: expected an id or a list of ids");
        out.backends.push_back(id);
      }
    } else if (key == "plan_cache") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1) {
        return invalid("option plan_cache: expected an integer of at least 1");
      }
      out.cache_limit = value;
    } else if (key == "deterministic" && !value.is_boolean()) {
      return invalid("option deterministic: expected true or false");
    } else {
      out.rest[key] = value;
    }
  }
  return out;
}

json properties_in(std::string_view schema_text) {
  json schema = json::parse(schema_text, nullptr, false);
  return schema.is_object() ? schema.value("properties", json::object()) : json::object();
}

// The options of the plan that this backend's schema knows.
Result<Ref<tn_options>> options_for(tn_ctx* ctx,
                                    std::string_view id,
                                    std::string_view schema_text,
                                    const json& rest,
                                    json* unknown) {
  json properties = properties_in(schema_text);
  json known = json::object();
  for (auto& [key, value] : rest.items()) {
    if (!properties.contains(key)) continue;
    known[key] = value;
    unknown->erase(key);
  }
  Ref<tn_options> given = new_options(ctx);
  TN_CHECK(parse_options(given.get(), known.dump()));
  return validate_options(ctx, schema_text, given.get(), id);
}

// The first device that can be used; the reasons of those that cannot, when there is none.
Result<json> choose_device(const std::string& id, const json& devices) {
  std::string why;
  for (const json& device : devices) {
    if (device.is_object() && !device.contains("why")) return device;
    if (device.is_object()) why += cat(why.empty() ? ": " : "; ", device.value("why", ""));
  }
  return Status(TN_UNAVAILABLE,
                cat("backend ", id, ": no device", why, "; see `tenon plugin doctor`"));
}

Status open_backend(
    tn_ctx* ctx, const std::string& id, const json& rest, json* unknown, BackendUse* use) {
  use->id = id;
  TN_TRY(found, ctx->session->registry->find("tenon.backend/1", id));
  TN_TRY(options, options_for(ctx, id, view(found.component->options_schema), rest, unknown));
  use->options = std::move(options);
  TN_TRY(component, create_component(ctx, "tenon.backend/1", id, use->options.get()));
  use->component = std::move(component);
  TN_TRY(interface, use->component->interface("tenon.backend/1"));
  use->self = interface.self;
  use->table = static_cast<const tn_backend*>(interface.table);
  std::string text;
  tn_sink sink = sink_into(&text);
  TN_CHECK(use->called("devices", use->table->devices(use->self, &sink)));
  json devices = json::parse(text, nullptr, false);
  if (!devices.is_array())
    return {TN_INTERNAL, cat("backend ", id, ": devices() is no JSON array")};
  TN_TRY(chosen, choose_device(id, devices));
  use->device = chosen.value("id", 0);
  use->dl = {chosen.value("type", kDLCPU), use->device};
  use->own_memory = use->dl.device_type != kDLCPU;
  return {};
}

Status add_backend(tn_plan* plan, const std::string& id, const json& rest, json* unknown) {
  auto use = std::make_unique<BackendUse>();
  TN_CHECK(open_backend(plan->ctx, id, rest, unknown, use.get()));
  use->last_resort = id == "reference" && !plan->backends.empty();
  plan->backends.push_back(std::move(use));
  return {};
}

json backend_rows(const tn_plan* plan) {
  return json::parse(plan->ctx->session->registry->list_components("tenon.backend/1"));
}

// Backends whose schema names an option of the plan in "joined_by" stand before all others.
Status add_joined_backends(tn_plan* plan, const json& rest, json* unknown) {
  for (const json& one : backend_rows(plan)) {
    const json& schema = one["schema"];
    std::string option = schema.is_object() ? schema.value("joined_by", "") : "";
    if (option.empty() || !rest.contains(option)) continue;
    const std::string id = one["id"];
    if (std::ranges::any_of(plan->backends, [&](const auto& use) { return use->id == id; }))
      continue;
    TN_CHECK(add_backend(plan, id, rest, unknown));
    plan->backends.back()->is_joined = true;
    std::ranges::rotate(plan->backends, plan->backends.end() - 1);
  }
  return {};
}

// Where no backend is named: the preferred one ("preference" in its schema, above
// 0) of those that find a device here. Nothing else decides it.
Status add_default_backend(tn_plan* plan, const json& rest, json* unknown) {
  std::multimap<int64_t, std::string, std::greater<>> wanted;
  for (const json& one : backend_rows(plan)) {
    const json& schema = one["schema"];
    int64_t preference = schema.is_object() ? schema.value("preference", int64_t{0}) : 0;
    if (preference > 0) wanted.emplace(preference, one["id"]);
  }
  for (const auto& [preference, id] : wanted) {
    json left = *unknown;
    Status added = add_backend(plan, id, rest, &left);
    if (added.code() == TN_NOT_FOUND || added.code() == TN_UNAVAILABLE) continue;
    *unknown = std::move(left);
    return added;
  }
  return {};
}

Status unknown_option(const tn_plan* plan, const std::string& name) {
  const std::string& backend = plan->preferred().id;
  TN_TRY(found, plan->ctx->session->registry->find("tenon.backend/1", backend));
  json known = properties_in(view(found.component->options_schema));
  std::vector<std::string> names;
  for (const auto& option : known.items())
    names.push_back(option.key());
  std::string_view near = nearest(name, names);
  return invalid(cat("plan options: no backend of this plan (", backend, ") has an option ", name,
                     near.empty() ? "" : cat(" (did you mean '", near, "'?)")));
}

Status open_backends(tn_plan* plan, const PlanOptions& options) {
  json unknown = options.rest;
  bool names_reference = false;
  unknown.erase("deterministic");  // a backend without this option is so anyway
  for (const std::string& id : options.backends) {
    TN_CHECK(add_backend(plan, id, options.rest, &unknown));
    names_reference = names_reference || id == "reference";
  }
  if (options.backends.empty()) TN_CHECK(add_default_backend(plan, options.rest, &unknown));
  if (!names_reference) TN_CHECK(add_backend(plan, "reference", options.rest, &unknown));
  TN_CHECK(add_joined_backends(plan, options.rest, &unknown));
  unknown.erase("threads");  // a backend without threads of its own runs the same with any number
  return unknown.empty() ? Status() : unknown_option(plan, unknown.begin().key());
}

Status add_taps(tn_plan* plan, const tn_value_id* taps, uint64_t n_taps) {
  if (!n_taps) return {};
  tn_edit* edit = nullptr;
  TN_CHECK(Status(edit_service()->begin(plan->graph.get(), &edit)));
  Status status;
  for (uint64_t i = 0; i < n_taps && status.ok(); ++i) {
    std::string name = cat("tap", i);
    status = Status(edit_service()->add_output(edit, str(name), taps[i]));
  }
  if (status.ok()) return Status(edit_service()->commit(edit));
  edit_service()->rollback(edit);
  return status;
}

// Right number, dense, on the CPU or a device of the plan: what a run takes as it is.
Status check_inputs(tn_plan* plan, const DLTensor* const* in, uint64_t n_in) {
  const tn_host_graph& g = *graph_service();
  uint64_t wanted = g.count(plan->graph.get(), TN_LIST_INPUTS) - plan->states.size();
  if (n_in != wanted) return invalid(cat("expected ", wanted, " inputs, got ", n_in));
  for (uint64_t i = 0; i < n_in; ++i) {
    DLDevice at = in[i]->device;
    TN_TRY(bytes, dense_bytes(dtype_of(in[i]->dtype), dims_of(*in[i])));
    if (bytes > 0 && !in[i]->data) return invalid(cat("input ", i, ": expected data, got NULL"));
    if (at.device_type != kDLCPU && !plan->backend_at(at)) {
      return invalid(cat("input ", i, ": expected a tensor on the CPU or on a device of the plan, ",
                         "got device type ", at.device_type, " id ", at.device_id));
    }
    if (!is_dense(*in[i])) return invalid(cat("input ", i, ": expected a dense tensor"));
  }
  return {};
}

tn_status* compile(tn_ctx* ctx,
                   const tn_graph* graph,
                   const tn_value_id* taps,
                   uint64_t n_taps,
                   tn_str options,
                   tn_plan** out) {
  return guarded_out(out, [&] { return make_plan(ctx, graph, taps, n_taps, view(options)); });
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
    TN_CHECK(check_inputs(plan, in, n_in));
    return form_for(plan, in, n_in).status();
  });
}

tn_status* run(tn_plan* plan,
               const DLTensor* const* in,
               uint64_t n_in,
               const tn_outputs* outputs,
               const tn_cancel* cancel) {
  return guarded([&] { return run_plan(plan, in, n_in, outputs, cancel); });
}

json partition_json(tn_plan* plan, const Step& step) {
  json partition = {{"nodes", step.names}};
  if (step.kind == StepKind::kControl) {
    partition["backend"] = "host";
    return partition;
  }
  BackendUse& use = *plan->backends[step.backend];
  partition["backend"] = use.id;
  partition["workspace_bytes"] = step.workspace;
  if (!use.table->describe) return partition;
  std::string text;
  tn_sink sink = sink_into(&text);
  Status described(use.table->describe(use.self, step.exe, &sink));
  json more = json::parse(text, nullptr, false);
  if (described.ok() && more.is_object()) partition.update(more);
  return partition;
}

tn_status* describe(tn_plan* plan, const tn_sink* sink) {
  return guarded([&]() -> Status {
    json out = {{"backends", json::array()},
                {"partitions", json::array()},
                {"fallback_nodes", json::array()}};
    for (bool is_joined : {false, true})  // the one that is preferred stands first
      for (const auto& use : plan->backends)
        if (use->is_joined == is_joined) out["backends"].push_back(use->id);
    for (const Fallback& f : fallbacks_of(plan))
      out["fallback_nodes"].push_back({{"node", f.node}, {"op", f.op}, {"why", f.why}});
    if (std::shared_ptr<Compiled> compiled = last_used(plan)) {
      for (const Step& step : compiled->steps) {
        if (step.kind != StepKind::kCopy) out["partitions"].push_back(partition_json(plan, step));
      }
      out["arena_bytes"] = compiled->arena_bytes;
      out["copies_per_run"] = compiled->copies;
    }
    std::string text = out.dump();
    return Status(sink->write(sink->ctx, text.data(), text.size()));
  });
}

// Memory for outputs that are not read.
struct Scratch {
  tn_ctx* ctx;
  std::vector<Ref<tn_tensor>> tensors;
  static tn_status* get(void* self, uint64_t, const DLTensor* proto, DLTensor* out) {
    auto& scratch = *static_cast<Scratch*>(self);
    return guarded([&]() -> Status {
      TN_TRY(made, alloc_tensor(scratch.ctx, dtype_of(proto->dtype), dims_of(*proto)));
      *out = made->dl;
      scratch.tensors.push_back(made);
      return {};
    });
  }
};

tn_status* profile(tn_plan* plan, const DLTensor* const* in, uint64_t n_in, const tn_sink* sink) {
  return guarded([&]() -> Status {
    Scratch scratch{plan->ctx, {}};
    tn_outputs outputs{&scratch, Scratch::get};
    json layers = json::array();
    TN_CHECK(run_plan(plan, in, n_in, &outputs, nullptr, &layers));
    std::string text = layers.dump();
    return Status(sink->write(sink->ctx, text.data(), text.size()));
  });
}

}  // namespace

Result<Ref<tn_plan>> make_plan(tn_ctx* ctx,
                               const tn_graph* graph,
                               const tn_value_id* taps,
                               uint64_t n_taps,
                               std::string_view options_text) {
  TN_TRY(options, read_options(options_text));
  Ref<tn_plan> plan = new_plan(ctx, graph);
  plan->options_text = options_text;
  TN_CHECK(add_taps(plan.get(), taps, n_taps));
  TN_CHECK(open_backends(plan.get(), options));
  const bool on_devices =
      std::ranges::any_of(plan->backends, [](const auto& use) { return use->own_memory; });
  plan->cache_limit = options.cache_limit.value_or(on_devices ? kFormsOnDevices : kForms);
  plan->kept = std::make_shared<States>(plan->backends);
  TN_CHECK(make_states(plan.get()));
  // Declared sizes are for a form of its own to trust. Which forms were made before must not show
  // in the last bit of a result where that was asked for.
  plan->shares_passes = plan->states.empty() && !options.rest.value("deterministic", false) &&
                        !trusts_declared(*plan->graph.get());
  return plan;
}

Status run_plan(tn_plan* plan,
                const DLTensor* const* in,
                uint64_t n_in,
                const tn_outputs* outputs,
                const tn_cancel* cancel,
                json* profile) {
  TN_CHECK(check_inputs(plan, in, n_in));
  TN_TRY(compiled, form_for(plan, in, n_in));
  return run_or_relearn(plan, compiled, in, n_in, outputs, cancel, profile);
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

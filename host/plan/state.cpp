// SPDX-License-Identifier: Apache-2.0
// States of a plan: who keeps them, and how they are read and written from outside.
#include <algorithm>
#include <cstring>

#include "plan/plan.hpp"
#include "services/boundary.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

// What the keeper has; nothing: zeros.
Result<Ref<tn_tensor>> kept_value(tn_plan* plan, const PlanState& state) {
  if (state.keeper < 0) return Ref<tn_tensor>(state.now);
  BackendUse& use = *plan->backends[state.keeper];
  TN_TRY(value, alloc_tensor(plan->ctx, state.dtype, state.dims));
  Status got =
      use.called("state_get", use.table->state_get(use.self, plan->backend_states[state.keeper],
                                                   str(state.name), &value->dl));
  if (got.code() == TN_NOT_FOUND) return Ref<tn_tensor>();
  TN_CHECK(std::move(got));
  return value;
}

Result<PlanState*> find_state(tn_plan* plan, tn_str name) {
  for (PlanState& state : plan->states) {
    if (state.name == view(name)) return &state;
  }
  return not_found(cat("no state ", view(name)));
}

// What a caller gives for a state, or to write it into.
Status check_tensor(const PlanState& state, const DLTensor& given) {
  bool same = dtype_of(given.dtype) == state.dtype && given.ndim >= 0 &&
              (given.ndim == 0 || given.shape) && std::ranges::equal(dims_of(given), state.dims);
  if (!same)
    return invalid(cat("state ", state.name, ": expected ", dtype_name(state.dtype),
                       shape_text(state.dims), ", got ", dtype_name(dtype_of(given.dtype)),
                       given.shape ? shape_text(dims_of(given)) : std::string(" without a shape")));
  TN_TRY(bytes, dense_bytes(state.dtype, state.dims));
  if (bytes > 0 && !given.data)
    return invalid(cat("state ", state.name, ": expected data, got NULL"));
  return {};
}

Result<std::vector<PlanState>> states_of(const tn_plan* plan) {
  const tn_host_graph& g = *graph_service();
  std::vector<PlanState> out;
  for (uint64_t s = 0, n = g.count(plan->graph.get(), TN_LIST_STATES); s < n; ++s) {
    tn_value_id value = g.value_at(plan->graph.get(), TN_LIST_STATES, s, 0);
    tn_type type{};
    type.struct_size = sizeof type;
    TN_CHECK(Status(g.value_type(plan->graph.get(), value, &type)));
    std::string name(view(g.value_name(plan->graph.get(), value)));
    if (type.rank == TN_RANK_UNKNOWN ||
        std::count_if(type.dims, type.dims + type.rank, [](int64_t d) { return d < 0; })) {
      return invalid(cat("state ", name, ": expected a known shape"));
    }
    out.push_back({name, type.dtype, {type.dims, type.dims + type.rank}});
  }
  return out;
}

}  // namespace

Status make_states(tn_plan* plan) {
  TN_TRY(states, states_of(plan));
  plan->states = std::move(states);
  plan->backend_states.resize(plan->backends.size());
  for (size_t b = 0; b < plan->backends.size() && !plan->states.empty(); ++b) {
    BackendUse& use = *plan->backends[b];
    if (!use.table->state_new) continue;
    TN_CHECK(Status(use.table->state_new(use.self, use.device, &plan->backend_states[b])));
  }
  return {};
}

Status check_states(tn_plan* plan) {
  TN_TRY(own, states_of(plan));
  auto same = [](const PlanState& a, const PlanState& b) {
    return a.name == b.name && a.dtype == b.dtype && a.dims == b.dims;
  };
  if (std::ranges::equal(own, plan->states, same)) return {};
  auto listed = [](const std::vector<PlanState>& states) {
    std::string out = cat(states.size());
    for (const PlanState& state : states)
      out += cat(" ", state.name, ": ", dtype_name(state.dtype), shape_text(state.dims));
    return out;
  };
  return {TN_FAILED_PRECONDITION, cat("a plan beside another: expected its states (",
                                      listed(plan->states), "), got ", listed(own))};
}

Status move_states(tn_plan* plan, const Compiled& compiled) {
  for (size_t i = 0; i < plan->states.size(); ++i) {
    PlanState& state = plan->states[i];
    const int keeper = compiled.state_keepers[i];
    if (state.keeper == keeper) continue;
    TN_TRY(value, kept_value(plan, state));
    state.now = state.next = Ref<tn_tensor>();
    if (keeper >= 0) {
      BackendUse& use = *plan->backends[keeper];
      Status set;
      if (value)
        set = use.called("state_set", use.table->state_set(use.self, plan->backend_states[keeper],
                                                           str(state.name), &value->dl));
      TN_CHECK(std::move(set));
    } else {
      if (!value) {
        TN_TRY(zeros, alloc_tensor(plan->ctx, state.dtype, state.dims));
        value = std::move(zeros);
      }
      TN_TRY(next, alloc_tensor(plan->ctx, state.dtype, state.dims));
      state.now = std::move(value);
      state.next = std::move(next);
    }
    state.keeper = keeper;
  }
  return {};
}

tn_status* state_set(tn_plan* plan, tn_str name, const DLTensor* value) {
  return guarded([&]() -> Status {
    TN_TRY(state, find_state(plan, name));
    TN_CHECK(check_tensor(*state, *value));
    if (state->keeper >= 0) {
      BackendUse& use = *plan->backends[state->keeper];
      return use.called(
          "state_set",
          use.table->state_set(use.self, plan->backend_states[state->keeper], name, value));
    }
    if (!state->now) {
      TN_TRY(now, alloc_tensor(plan->ctx, state->dtype, state->dims));
      state->now = std::move(now);
    }
    return copy_dense(*value, const_cast<char*>(state->now->data()));
  });
}

tn_status* state_get(tn_plan* plan, tn_str name, DLTensor* out) {
  return guarded([&]() -> Status {
    TN_TRY(state, find_state(plan, name));
    TN_TRY(value, kept_value(plan, *state));
    TN_CHECK(check_tensor(*state, *out));
    char* to = static_cast<char*>(out->data) + out->byte_offset;
    if (value) return copy_dense(value->dl, to);
    TN_TRY(bytes, dense_bytes(state->dtype, state->dims));
    std::memset(to, 0, bytes);
    return {};
  });
}

}  // namespace tenon::host

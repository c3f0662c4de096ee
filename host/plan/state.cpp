// SPDX-License-Identifier: Apache-2.0
// States of a plan: who keeps them, and how they are read and written from outside.
#include <algorithm>
#include <cstring>

#include "memory/free_pages.hpp"
#include "plan/plan.hpp"
#include "services/boundary.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

constexpr uint64_t kLeastGivenBack = uint64_t{16} << 20;

// What the keeper has; nothing: zeros.
Result<Ref<tn_tensor>> kept_value(tn_plan* plan, const State& state) {
  if (state.keeper < 0) return Ref<tn_tensor>(state.now);
  BackendUse& use = *plan->backends[state.keeper];
  TN_TRY(value, alloc_tensor(plan->ctx, state.dtype, state.dims));
  Status got =
      use.called("state_get", use.table->state_get(use.self, plan->kept->by_backend[state.keeper],
                                                   str(state.name), &value->dl));
  if (got.code() == TN_NOT_FOUND) return Ref<tn_tensor>();
  TN_CHECK(std::move(got));
  return value;
}

// To the backend that keeps it from now on, or does already.
Status give_value(tn_plan* plan, const State& state, int keeper, const DLTensor& value) {
  BackendUse& use = *plan->backends[keeper];
  return use.called("state_set", use.table->state_set(use.self, plan->kept->by_backend[keeper],
                                                      str(state.name), &value));
}

Result<State*> find_state(tn_plan* plan, tn_str name) {
  if (State* found = plan->kept->find(view(name))) return found;
  return not_found(cat("no state ", view(name)));
}

// What a caller gives for a state, or to write it into.
Status check_tensor(const State& state, const DLTensor& given) {
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

}  // namespace

States::States(const BackendUses& users) : by_backend(users.size()) {
  for (const std::unique_ptr<BackendUse>& user : users)
    backends.push_back(*user);
}

States::~States() {
  for (size_t b = 0; b < by_backend.size(); ++b)
    if (by_backend[b]) backends[b].table->state_free(backends[b].self, by_backend[b]);
}

Result<std::vector<State*>> States::join(std::vector<State> wanted) {
  std::lock_guard lock(mutex);
  for (const State& one : wanted) {
    auto found = by_name.find(one.name);
    if (found == by_name.end()) continue;
    const State& other = found->second;
    if (other.dtype == one.dtype && other.dims == one.dims) continue;
    return Status(
        TN_FAILED_PRECONDITION,
        cat("state ", one.name, ": expected ", dtype_name(other.dtype), shape_text(other.dims),
            " as the plan beside it has, got ", dtype_name(one.dtype), shape_text(one.dims)));
  }
  std::vector<State*> out;
  for (State& one : wanted) {
    std::string name = one.name;
    out.push_back(&by_name.try_emplace(std::move(name), std::move(one)).first->second);
  }
  return out;
}

State* States::find(std::string_view name) {
  std::lock_guard lock(mutex);
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &found->second;
}

void States::begin_run(Compiled& compiled) {
  if (!is_common) return;
  std::lock_guard lock(mutex);
  const bool on_devices = std::ranges::any_of(backends, &BackendUse::own_memory);
  if (latest && latest != &compiled && on_devices) {
    std::lock_guard of_its_runs(latest->mutex);
    latest->idle.clear();
  }
  latest = &compiled;
}

Status make_states(tn_plan* plan) {
  const Tables& tables = *plan->graph->tables;
  std::vector<State> wanted;
  for (auto [input, next] : tables.states) {
    const Value& value = *tables.values.find(input);
    const Type& type = *value.type;
    if (type.rank == TN_RANK_UNKNOWN ||
        std::ranges::any_of(type.dims, [](int64_t dim) { return dim < 0; }))
      return invalid(cat("state ", *value.name, ": expected a known shape"));
    wanted.push_back({*value.name, type.dtype, type.dims});
  }
  TN_TRY(states, plan->kept->join(std::move(wanted)));
  plan->states = std::move(states);
  if (plan->states.empty()) return {};
  std::lock_guard lock(plan->kept->mutex);
  std::vector<void*>& kept = plan->kept->by_backend;
  for (size_t b = 0; b < plan->backends.size(); ++b) {
    BackendUse& use = *plan->backends[b];
    if (!use.table->state_new || kept[b]) continue;
    TN_CHECK(Status(use.table->state_new(use.self, use.device, &kept[b])));
  }
  return {};
}

Status move_states(tn_plan* plan, const Compiled& compiled) {
  uint64_t freed_bytes = 0;
  for (size_t i = 0; i < plan->states.size(); ++i) {
    State& state = *plan->states[i];
    const int keeper = compiled.state_keepers[i];
    if (state.keeper == keeper) continue;
    TN_TRY(value, kept_value(plan, state));
    if (keeper >= 0) {
      if (value) TN_CHECK(give_value(plan, state, keeper, value->dl));
      if (value) freed_bytes += value->bytes;
      state.now = state.next = Ref<tn_tensor>();
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
  // What was set lay here until now, and what a run makes would lie beside it.
  if (freed_bytes >= kLeastGivenBack) give_back_free_pages();
  return {};
}

tn_status* state_set(tn_plan* plan, tn_str name, const DLTensor* value) {
  return guarded([&]() -> Status {
    std::lock_guard turn(plan->kept->turn);
    TN_TRY(state, find_state(plan, name));
    TN_CHECK(check_tensor(*state, *value));
    if (state->keeper >= 0) {
      if (is_dense(*value)) return give_value(plan, *state, state->keeper, *value);
      TN_TRY(dense, copy_tensor(plan->ctx, *value));
      return give_value(plan, *state, state->keeper, dense->dl);
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
    std::lock_guard turn(plan->kept->turn);
    TN_TRY(state, find_state(plan, name));
    TN_TRY(value, kept_value(plan, *state));
    TN_CHECK(check_tensor(*state, *out));
    if (!is_dense(*out) || !is_on_cpu(out->device))
      return invalid(cat("state ", state->name, ": expected dense CPU memory to copy it to"));
    char* to = static_cast<char*>(out->data) + out->byte_offset;
    if (value) return copy_dense(value->dl, to);
    TN_TRY(bytes, dense_bytes(state->dtype, state->dims));
    std::memset(to, 0, bytes);
    return {};
  });
}

}  // namespace tenon::host

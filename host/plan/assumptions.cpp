// SPDX-License-Identifier: Apache-2.0
#include "plan/assumptions.hpp"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "graph/edit.hpp"
#include "plan/partition.hpp"
#include "services/log.hpp"
#include "services/trace.hpp"
#include "values/dtype.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

void warn(const tn_plan& plan, const std::string& text) {
  log_service()->write(plan.ctx, TN_LOG_WARNING, str(text));
}

// Answers the function for outputs of the first try to the second: a result that is wanted in the
// same type and shape again is asked for once. (Of the first few results: this takes no memory.)
class AskedOnce {
 public:
  explicit AskedOnce(const tn_outputs* theirs) : theirs_(theirs) {}
  tn_outputs outputs{this, get};

 private:
  static constexpr size_t kMost = 8;
  struct Given {
    DLTensor proto, tensor;
    int64_t dims[kMost];
  };
  bool has(uint64_t i, const DLTensor& proto) const {
    if (i >= kMost || !is_given_[i] || given_[i].proto.ndim != proto.ndim) return false;
    const DLTensor& before = given_[i].proto;
    return dtype_of(before.dtype) == dtype_of(proto.dtype) &&
           std::equal(proto.shape, proto.shape + proto.ndim, given_[i].dims);
  }
  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& asked = *static_cast<AskedOnce*>(self);
    if (asked.has(i, *proto)) {
      *out = asked.given_[i].tensor;
      return nullptr;
    }
    tn_status* failed = asked.theirs_->get(asked.theirs_->ctx, i, proto, out);
    if (failed || i >= kMost || proto->ndim > static_cast<int32_t>(kMost)) return failed;
    Given& given = asked.given_[i];
    given.proto = *proto;
    given.tensor = *out;
    std::copy(proto->shape, proto->shape + proto->ndim, given.dims);
    asked.is_given_[i] = true;
    return nullptr;
  }

  const tn_outputs* theirs_;
  bool is_given_[kMost] = {};
  Given given_[kMost];
};

// Codes of failures that sizes may be to blame for.
bool may_be_of_sizes(int32_t code) {
  return code == TN_INVALID_ARGUMENT || code == TN_FAILED_PRECONDITION || code == TN_OUT_OF_RANGE ||
         code == TN_INTERNAL || code == TN_UNIMPLEMENTED;
}

// The assumptions that a failure disproves and the specialization was compiled under.
struct Revision {
  Lost lost;
  bool distrusts_declared = false, closes_sizes = false, is_new = false;
};

// Under the plan's lock.
Revision revise(tn_plan& plan, const Compiled& compiled, const Step* at, const Status& failed) {
  Revision out;
  Lost& lost = plan.assumptions.lost;
  if (failed.code() == TN_UNIMPLEMENTED && at && at->kind == StepKind::kPartition) {
    lose(plan, at->backend, at->names, failed.text(), &out.lost);
    std::erase_if(out.lost, [&](const auto& one) { return lost.count(one.first); });
    lost.insert(out.lost.begin(), out.lost.end());
  }
  const Lost& before = compiled.compiled_under.lost;
  out.is_new = std::ranges::any_of(lost, [&](const auto& one) { return !before.count(one.first); });
  const bool rests_on_sizes = compiled.is_open || compiled.rests_on_declared;
  if (out.is_new || !rests_on_sizes || !may_be_of_sizes(failed.code())) return out;
  if (compiled.is_open) {
    out.closes_sizes = std::exchange(plan.assumptions.opens_sizes, false);
    out.is_new = true;
    return out;
  }
  out.distrusts_declared = std::exchange(plan.assumptions.trusts_declared, false);
  out.is_new = true;
  return out;
}

// Undoes a revision under which the plan cannot be compiled.
void restore(tn_plan& plan, const Revision& revision) {
  for (const auto& [who, why] : revision.lost)
    plan.assumptions.lost.erase(who);
  if (revision.distrusts_declared) plan.assumptions.trusts_declared = true;
  if (revision.closes_sizes) plan.assumptions.opens_sizes = true;
}

// The specialization that replaces one that failed; NULL when the failure is final.
CompiledRef specialization_instead_of(
    tn_plan* plan, const CompiledRef& failed, const Step* at, const Status& why, Inputs in) {
  std::unique_lock lock(plan->mutex);
  const Revision revision = revise(*plan, *failed, at, why);
  if (!revision.is_new) return nullptr;
  std::erase(plan->cache, failed);
  lock.unlock();
  Result<CompiledRef> other = specialization_for(plan, in);
  if (other.ok()) return *other;
  lock.lock();
  restore(*plan, revision);
  // What it failed at need not be in the next inputs.
  if (plan->cache.size() < plan->cache_limit) plan->cache.push_back(failed);
  return nullptr;
}

Status run_specialization(tn_plan* plan,
                          Compiled& compiled,
                          const RunRequest& request,
                          const Step** at) {
  Span span(plan->trace(), "run", plan->label);
  std::unique_lock turn(plan->kept->turn, std::defer_lock);
  if (!plan->states.empty() || plan->kept->is_common) turn.lock();
  plan->kept->begin_run(compiled);
  if (!plan->states.empty()) TN_CHECK(move_states(plan, compiled));
  return run_compiled(compiled, request, at);
}

}  // namespace

bool trusts_declared(const tn_graph& graph) {
  const Tables& t = *graph.tables;
  for (tn_node_id id : t.order) {
    for (tn_value_id output : t.nodes.find(id)->outputs) {
      const Value* value = t.values.find(output);
      if (!value || !value->declared) continue;
      if (value->type->rank != value->inferred->rank || value->type->dims != value->inferred->dims)
        return true;
    }
  }
  return false;
}

void warn_of_contradictions(tn_plan* plan, const tn_graph& bound) {
  {
    std::lock_guard lock(plan->mutex);
    if (std::exchange(plan->assumptions.warned_of_outputs, true)) return;
  }
  for (const Output& output : bound.tables->outputs) {
    const Value* value = bound.tables->values.find(output.value);
    if (!value || !value->declared || agree(*value->inferred, *value->declared)) continue;
    warn(*plan, cat("output ", *output.name, ": declared ", type_text(*value->declared),
                    ", the model computes ", type_text(*value->inferred), ", which counts"));
  }
}

Status forget_declared_sizes(tn_graph* graph) {
  TN_TRY(edit, begin_edit(graph));
  edit->forget_declared_sizes();
  return edit->commit();
}

Status forget_input_sizes(tn_graph* graph) {
  TN_TRY(edit, begin_edit(graph));
  edit->forget_input_sizes();
  edit->forget_declared_sizes();
  return edit->commit();
}

bool lose(const tn_plan& plan,
          int backend,
          const std::vector<std::string>& nodes,
          const std::string& why,
          Lost* lost) {
  if (nodes.empty() || static_cast<size_t>(backend) + 1 >= plan.backends.size()) return false;
  for (const std::string& node : nodes)
    lost->insert_or_assign({node, backend}, why);
  std::string more = nodes.size() > 1 ? cat(" and ", nodes.size() - 1, " more") : "";
  warn(plan, cat("backend ", plan.backends[backend]->id, " took node ", nodes[0], more,
                 " and cannot do it; another backend does: ", why));
  return true;
}

Status run_or_recompile(tn_plan* plan, CompiledRef compiled, const RunRequest& request) {
  AskedOnce asked(request.outputs);
  const RunRequest asks{request.in, &asked.outputs, request.cancel, request.profile};
  nlohmann::json* profile = request.profile;
  size_t n_layers = profile ? profile->size() : 0;
  Status first;
  bool has_trusted = false;
  for (;;) {
    const Step* at = nullptr;
    Status status = run_specialization(plan, *compiled, asks, &at);
    if (status.ok()) {
      if (first.ok() || !has_trusted || first.code() == TN_UNIMPLEMENTED) return status;
      warn(*plan, cat("the model declares other sizes than it computes: ", first.text()));
      return status;
    }
    has_trusted = has_trusted || compiled->rests_on_declared;
    compiled = specialization_instead_of(plan, compiled, at, status, request.in);
    if (first.ok()) first = std::move(status);
    if (!compiled) return first;
    if (profile)
      profile->erase(profile->begin() + static_cast<std::ptrdiff_t>(n_layers), profile->end());
  }
}

}  // namespace tenon::host

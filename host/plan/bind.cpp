// SPDX-License-Identifier: Apache-2.0
#include "plan/bind.hpp"

#include "tenon/role/pass.h"

#include "plan/assumptions.hpp"
#include "services/boundary.hpp"
#include "services/trace.hpp"
#include "types/value_type.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

std::string text_of(const tn_type& type) {
  Result<TypeRef> read = read_type(&type, "input");
  return read.ok() ? type_text(**read) : "?";
}

Status run_pass(tn_ctx* ctx, const std::string& id, tn_graph* graph) {
  Span span(*ctx->session->trace, "compile", id);
  TN_TRY(pass, Made<tn_pass>::create(ctx, "tenon.pass/1", id, nullptr));
  tn_sink nowhere{nullptr, [](void*, const void*, uint64_t) -> tn_status* { return nullptr; }};
  return pass.called("run", pass->run(pass.self(), graph, nullptr, &nowhere));
}

// Passes find nearly everything without the sizes: a plan that meets a second set of shapes runs
// them once on its own graph, and binds what they left. The first specialization comes from the
// graph itself, as it is often the only one, and folded weights would stay beside packed ones.
Result<const tn_graph*> source_of(tn_plan* plan) {
  {
    std::lock_guard lock(plan->mutex);
    if (!std::exchange(plan->has_bound, true) || !plan->shares_passes) return plan->graph.get();
  }
  std::lock_guard lock(plan->preparing);
  if (plan->prepared) return plan->prepared.get();
  tn_graph* raw = nullptr;
  TN_CHECK(Status(g().clone(plan->graph.get(), &raw)));
  Ref<tn_graph> prepared = Ref<tn_graph>::take(raw);
  if (Status passed = run_passes(*plan, raw); !passed.ok()) {
    // A pass that needs sizes: it runs for each specialization.
    std::lock_guard own(plan->mutex);
    plan->shares_passes = false;
    return plan->graph.get();
  }
  plan->prepared = std::move(prepared);
  return plan->prepared.get();
}

class Binder {
 public:
  Binder(const tn_graph* graph, Inputs in) : graph_(graph), in_(in) {}

  Result<Ref<tn_graph>> bind(Shapes* key) const {
    uint64_t n = g().count(graph_, TN_LIST_INPUTS);
    std::vector<tn_type> types(n);
    std::vector<const tn_type*> pointers(n, nullptr);
    for (uint64_t i = 0, given = 0; i < n; ++i) {
      tn_value_id value = g().value_at(graph_, TN_LIST_INPUTS, i, 0);
      if (is_state(graph_, value, 0)) continue;
      if (given >= in_.size()) break;
      const DLTensor& tensor = *in_[given++];
      if (type_of(graph_, value).kind != TN_KIND_TENSOR) {
        TN_CHECK(check_packed(i, tensor));
        key->push_back({kAnyShape});
        continue;
      }
      key->push_back({dtype_of(tensor.dtype)});
      key->back().insert(key->back().end(), tensor.shape, tensor.shape + tensor.ndim);
      types[i] = {sizeof(tn_type),        TN_KIND_TENSOR,
                  dtype_of(tensor.dtype), static_cast<uint32_t>(tensor.ndim),
                  tensor.shape,           nullptr};
      TN_CHECK(check(i, types[i]));
      pointers[i] = &types[i];
    }
    tn_graph* raw = nullptr;
    TN_CHECK(Status(g().bind(graph_, pointers.data(), n, &raw)));
    return Ref<tn_graph>::take(raw);
  }

 private:
  Status check_packed(uint64_t input, const DLTensor& given) const {
    if (dtype_of(given.dtype) == TN_U8 && given.ndim == 1) return {};
    return invalid(cat("input ", name(input),
                       ": expected a packed list of uint8 with one axis, got ",
                       dtype_name(dtype_of(given.dtype)), " with ", given.ndim, " axes"));
  }

  Status check(uint64_t input, const tn_type& given) const {
    tn_type wanted = type_of(graph_, g().value_at(graph_, TN_LIST_INPUTS, input, 0));
    bool fits = wanted.dtype == TN_DTYPE_NONE || wanted.dtype == given.dtype;
    fits = fits && (wanted.rank == TN_RANK_UNKNOWN || wanted.rank == given.rank);
    for (uint32_t d = 0; fits && wanted.rank != TN_RANK_UNKNOWN && d < wanted.rank; ++d) {
      fits = wanted.dims[d] < 0 || wanted.dims[d] == given.dims[d];
    }
    if (fits) return {};
    return invalid(
        cat("input ", name(input), ": expected ", text_of(wanted), ", got ", text_of(given)));
  }

  std::string_view name(uint64_t input) const {
    return view(g().io_name(graph_, TN_LIST_INPUTS, input));
  }

  const tn_graph* graph_;
  Inputs in_;
};

// Exporters state for the inputs of a loop's body the sizes of the first iteration, and give sizes
// that differ one name. What the loop carries counts.
Result<Ref<tn_graph>> bind_inputs(tn_plan* plan, Inputs in, Shapes* key) {
  TN_TRY(source, source_of(plan));
  Result<Ref<tn_graph>> bound = Binder(source, in).bind(key);
  if (bound.ok() || !plan->is_body) return bound;
  tn_graph* raw = nullptr;
  TN_CHECK(Status(g().clone(source, &raw)));
  Ref<tn_graph> open = Ref<tn_graph>::take(raw);
  TN_CHECK(forget_input_sizes(raw));
  key->clear();
  return Binder(raw, in).bind(key);
}

}  // namespace

Status run_passes(const tn_plan& plan, tn_graph* graph) {
  const BackendUse& first = plan.preferred();
  if (!first.table->prepare) return {};
  std::string ids;
  tn_sink sink = sink_into(&ids);
  TN_CHECK(Status(first.table->prepare(first.self, &sink)));
  for (size_t at = 0; at < ids.size();) {
    size_t end = std::min(ids.find('\n', at), ids.size());
    if (end > at) TN_CHECK(run_pass(plan.ctx, ids.substr(at, end - at), graph));
    at = end + 1;
  }
  return {};
}

const tn_host_graph& g() {
  return *graph_service();
}

tn_type type_of(const tn_graph* graph, tn_value_id value) {
  tn_type type{};
  type.struct_size = sizeof type;
  type.rank = TN_RANK_UNKNOWN;
  Status ignored(g().value_type(graph, value, &type));
  return type;
}

int64_t state_of(const tn_graph* graph, tn_value_id value, uint32_t side) {
  for (uint64_t s = 0, n = g().count(graph, TN_LIST_STATES); s < n; ++s) {
    if (g().value_at(graph, TN_LIST_STATES, s, side) == value) return static_cast<int64_t>(s);
  }
  return -1;
}

bool is_state(const tn_graph* graph, tn_value_id value, uint32_t side) {
  return state_of(graph, value, side) >= 0;
}

Result<Ref<tn_graph>> bind_shapes(tn_plan* plan,
                                  Inputs in,
                                  const Assumptions& assumptions,
                                  Shapes* key) {
  TN_TRY(bound, bind_inputs(plan, in, key));
  warn_of_contradictions(plan, *bound.get());
  if (!assumptions.trusts_declared) TN_CHECK(forget_declared_sizes(bound.get()));
  TN_CHECK(run_passes(*plan, bound.get()));
  return bound;
}

}  // namespace tenon::host

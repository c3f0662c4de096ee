// SPDX-License-Identifier: Apache-2.0
// tenon.h: one operator of anyone's, called on tensors: a graph of one node that runs once.
#include "tenon/role/op.h"

#include <memory>

#include "capi/capi.hpp"
#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "plan/plan.hpp"
#include "services/boundary.hpp"
#include "values/json_any.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

struct OpName {
  std::string_view domain, type;
};

OpName split(std::string_view op) {
  size_t dot = op.rfind('.');
  if (dot == std::string_view::npos) return {"", op};
  return {op.substr(0, dot), op.substr(dot + 1)};
}

Status read_attributes(tn_edit& edit, OpName name, std::string_view text, NodeSpec* spec) {
  TN_TRY(json, parse_object(text, "attributes"));
  for (const auto& [key, value] : json.items()) {
    if (value.is_null()) continue;
    Any given = any_of_json(value);
    TN_TRY(owned, own_attribute(edit, name.domain, name.type, key, given.get()));
    assign(spec->attrs, key, owned);
  }
  return {};
}

// One output where neither the caller nor the row's axes say more.
uint64_t outputs_of(const OpRow& row, uint64_t asked) {
  return asked ? asked : row.axes ? std::max<uint64_t>(row.axes_view.n_outputs, 1) : 1;
}

struct Asked {
  const DLTensor* const* in;
  uint64_t n_in;
  uint64_t n_out;
  std::string_view attributes;
};

Status build(tn_edit& edit, std::string_view op, const Asked& asked) {
  OpName name = split(op);
  const OpRow* row = edit.ctx()->session->ops->find(name.domain, name.type);
  if (!row)
    return not_found(
        cat("operator ", op, ": no plugin brings it", edit.ctx()->session->ops->hint(op)));
  if (asked.n_out > kMostOfNode)
    return invalid(
        cat("operator ", op, ": expected at most ", kMostOfNode, " results, got ", asked.n_out));
  NodeSpec spec{name.domain, name.type, "", "", {}, {}, {}};
  for (uint64_t i = 0; i < asked.n_in; ++i) {
    const DLTensor* in = asked.in[i];
    spec.inputs.push_back(0);
    if (!in) continue;
    tn_type type{sizeof type, TN_KIND_TENSOR, dtype_of(in->dtype), static_cast<uint32_t>(in->ndim),
                 in->shape,   nullptr};
    TN_TRY(read, read_type(&type, cat("input ", i)));
    TN_TRY(id, edit.add_input(cat("x", i), read));
    spec.inputs.back() = id;
  }
  while (!spec.inputs.empty() && spec.inputs.back() == 0)
    spec.inputs.pop_back();
  for (uint64_t i = 0; i < outputs_of(*row, asked.n_out); ++i)
    spec.outputs.push_back(cat("y", i));
  TN_CHECK(read_attributes(edit, name, asked.attributes, &spec));
  TN_TRY(node, edit.add_node(spec));
  std::vector<tn_value_id> made = edit.tables().nodes.find(node)->outputs;
  for (size_t i = 0; i < made.size(); ++i)
    TN_CHECK(edit.add_output(cat("y", i), made[i]));
  return edit.commit();
}

Status run_op(tn_ctx* ctx,
              std::string_view op,
              const Asked& asked,
              const tn_outputs* outputs,
              const tn_cancel* cancel) {
  Ref<tn_graph> graph = Ref<tn_graph>::take(new_graph(ctx, std::make_shared<const Tables>()));
  {
    TN_TRY(edit, begin_edit(graph.get()));
    TN_CHECK(build(*edit, op, asked));
  }
  TN_TRY(plan, make_plan(ctx, graph.get(), {}, ""));
  std::vector<const DLTensor*> present;
  for (uint64_t i = 0; i < asked.n_in; ++i)
    if (asked.in[i]) present.push_back(asked.in[i]);
  return run_plan(plan.get(), {present, outputs, cancel});
}

}  // namespace
}  // namespace tenon::host

namespace tenon::host::exported {

tn_status* tenon_op(tenon_session* session,
                    tn_str op,
                    tn_str attributes,
                    const DLTensor* const* in,
                    uint64_t n_in,
                    uint64_t n_out,
                    const tn_outputs* outputs,
                    const tn_cancel* cancel) {
  return guarded([&] {
    Asked asked{in, n_in, n_out, view(attributes)};
    return run_op(context(session), view(op), asked, outputs, cancel);
  });
}

}  // namespace tenon::host::exported

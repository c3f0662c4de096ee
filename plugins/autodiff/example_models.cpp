// SPDX-License-Identifier: Apache-2.0
#include "example_models.hpp"

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "tenon/sdk/component.hpp"

#include "bodies.hpp"

namespace tenon::autodiff {
namespace {

Result<OwnedGraph> gradients_of_each(tn_ctx* ctx,
                                     Graph model,
                                     const std::string& output,
                                     const Examples& examples,
                                     const std::vector<Named>& wrt,
                                     const Cancel& cancel) {
  std::vector<Type> types;
  std::vector<std::unique_ptr<TypeView>> views;
  std::vector<const tn_type*> raw;
  std::string in_axes;
  for (Value input : model.inputs()) {
    types.push_back(input.type());
    if (!examples.leads(types.back())) {
      in_axes += "none,";
      continue;
    }
    in_axes += "0,";
    types.back().dims[0] = 1;
    types.back().symbols[0].clear();
  }
  for (const Type& type : types)
    raw.push_back(views.emplace_back(std::make_unique<TypeView>(type))->get());
  tn_graph* bound = nullptr;
  TN_CHECK(Status(services.graph->bind(model.raw, raw.data(), raw.size(), &bound))
               .in("the model of one example"));
  OwnedGraph graph = OwnedGraph::take(bound);
  TN_TRY(edit, Edit::begin(bound));
  nlohmann::json names = nlohmann::json::array();
  for (const Named& named : wrt) {
    // A constant as an input: it stays the one of the graph that this is put into.
    std::string name = named.name;
    if (Value constant = edit.graph().find(name); constant && constant.is_constant()) {
      name = cat("parameter/", named.name);
      TN_TRY(input, edit.input(name, constant.type()));
      TN_CHECK(edit.replace(constant, input));
      in_axes += "none,";
    }
    names.push_back(name);
  }
  TN_CHECK(edit.commit());
  in_axes.pop_back();
  auto apply = [&](std::string_view id, const nlohmann::json& options) -> Status {
    return run_pass(ctx, graph.get(), id, options.dump(), cancel.raw());
  };
  TN_CHECK(apply("autodiff.grad", {{"wrt", names}, {"output", output}}));
  TN_CHECK(apply("autodiff.vmap", {{"in_axes", in_axes}, {"axis_name", examples.symbol()}}));
  return graph;
}

}  // namespace

Result<std::vector<Value>> gradients_by_model(tn_ctx* ctx,
                                              const EditView& edit,
                                              Graph model,
                                              const std::string& output,
                                              const Examples& examples,
                                              const std::vector<Named>& wrt,
                                              const Cancel& cancel) {
  TN_TRY(graph, gradients_of_each(ctx, model, output, examples, wrt, cancel));
  Builder b(edit);
  std::vector<Value> inputs = edit.graph().inputs();
  inputs.resize(model.inputs().size());  // without stand-ins
  for (Value& input : inputs)
    if (examples.leads(input.type())) input = b.op("Unsqueeze", {input, b.ints({1})});
  for (const Named& named : wrt)
    if (named.value.is_constant()) inputs.push_back(named.value);
  TN_CHECK(b.status());
  return copy_into(edit, graph.view(), inputs);
}

}  // namespace tenon::autodiff

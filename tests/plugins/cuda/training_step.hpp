// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training step of a network, made by the passes that trainer.train uses: loss, mixed precision,
// gradients, update.

#include <nlohmann/json.hpp>

#include "tenon/role/loss.h"
#include "tenon/role/pass.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/edit.hpp"

#include "networks.hpp"

namespace tenon::test {

inline Status run_pass(tn_ctx* ctx,
                       tn_graph* graph,
                       std::string_view id,
                       const nlohmann::json& options = nlohmann::json::object()) {
  TN_TRY(pass, Component::create(ctx, "tenon.pass/1", id, options.dump()));
  StringSink report;
  return Status(pass.table<tn_pass>()->run(pass.self(), graph, nullptr, report.get())).in(id);
}

// The mean cross entropy of the first output, as output "loss" in its place.
inline Status add_cross_entropy(tn_ctx* ctx, tn_graph* graph) {
  TN_TRY(loss, Component::create(ctx, "tenon.loss/1", "trainer.cross_entropy", ""));
  TN_TRY(edit, Edit::begin(graph));
  Value prediction = edit.graph().outputs()[0];
  TN_TRY(target, edit.input("label", Type(TN_I64, {prediction.type().dims[0]})));
  tn_objective given{};
  given.struct_size = sizeof given;
  given.n_predictions = given.n_targets = 1;
  given.predictions = &prediction.id;
  given.targets = &target.id;
  tn_value_id made = 0;
  TN_CHECK(Status(loss.table<tn_loss>()->build(loss.self(), edit.raw, &given, &made)));
  TN_CHECK(edit.output("loss", edit.value(made)));
  TN_CHECK(Status(services.edit->remove_output(edit.raw, 0)));
  return edit.commit();
}

// precision: fp32, fp16 (with a loss scale) or bf16.
inline Result<OwnedGraph> training_step(tn_ctx* ctx,
                                        const Network& network,
                                        const std::string& optimizer,
                                        const std::string& precision) {
  tn_graph* raw = nullptr;
  TN_CHECK(Status(services.graph->parse(ctx, str(network.text), &raw)));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_CHECK(add_cross_entropy(ctx, raw));
  bool is_scaled = precision == "fp16";
  if (precision != "fp32") {
    const char* dtype = is_scaled ? "float16" : "bfloat16";
    TN_CHECK(run_pass(ctx, raw, "precision.autocast", {{"device", "cuda"}, {"dtype", dtype}}));
  }
  if (is_scaled) TN_CHECK(run_pass(ctx, raw, "precision.loss_scale", {{"output", "loss"}}));
  TN_CHECK(run_pass(ctx, raw, "autodiff.value_and_grad",
                    {{"wrt", network.weights},
                     {"output", is_scaled ? "scaled_loss" : "loss"},
                     {"has_aux", is_scaled}}));
  if (is_scaled) TN_CHECK(run_pass(ctx, raw, "precision.unscale"));
  TN_CHECK(run_pass(ctx, raw, "trainer.step", {{"optimizer", optimizer}}));
  if (is_scaled) TN_CHECK(run_pass(ctx, raw, "precision.loss_scale_step"));
  return graph;
}

}  // namespace tenon::test

// SPDX-License-Identifier: Apache-2.0
// Products of a loss's Hessian and a direction, batch by batch: the gradients' derivative along it
// (Pearlmutter 1994), which the passes "autodiff.grad" and "autodiff.jvp" make.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "tenon/sdk/build.hpp"

#include "batch_values.hpp"

namespace tenon::pruner {
namespace {

// Those that the graph still has: on the others no gradient depends, so that their part of the
// Hessian is zero, as of layers that the first output does not read.
std::vector<Value> read_by(Graph graph, const std::vector<Value>& constants) {
  std::vector<Value> out;
  for (Value v : constants)
    if (graph.find(v.name())) out.push_back(v);
  return out;
}

// Behind the gradients, as further outputs, their derivatives; the tangents of these constants are
// the last inputs.
Status derive_again(tn_ctx* ctx,
                    tn_graph* graph,
                    const std::vector<Value>& constants,
                    const Cancel& cancel) {
  if (constants.empty()) return {};
  nlohmann::json wrt = nlohmann::json::array(), outputs = nlohmann::json::array();
  for (Value v : constants) {
    wrt.push_back(v.name());
    outputs.push_back(cat("grad/", v.name()));
  }
  nlohmann::json options{{"wrt", wrt}, {"outputs", outputs}};
  return run_pass(ctx, graph, "autodiff.jvp", options.dump(), cancel.raw());
}

// Gives each tangent, of `derived`, its direction: these tensors, one for each constant, or, where
// there are none, the constants themselves; with those the outputs become g - H w / 2. Only one
// output for each constant stays.
Status direct(tn_graph* graph,
              const std::vector<Value>& constants,
              const std::vector<Value>& derived,
              const std::vector<Tensor>& directions) {
  TN_TRY(edit, Edit::begin(graph));
  const size_t n = constants.size(), n_derived = derived.size();
  const size_t first_input = edit.graph().inputs().size() - n_derived;
  auto place = [](const std::vector<Value>& values, Value value) {
    return static_cast<size_t>(std::ranges::find(values, value) - values.begin());
  };
  for (size_t i = n_derived; i-- > 0;) {
    Value tangent = edit.graph().inputs()[first_input + i];
    Value direction = edit.value(derived[i].id);
    if (!directions.empty()) {
      TN_TRY(made,
             edit.constant(directions[place(constants, derived[i])], cat("pruner/direction", i)));
      direction = made;
    }
    TN_CHECK(edit.replace(tangent, direction));
    TN_CHECK(services.edit->remove_input(edit.raw, first_input + i));
  }
  std::vector<Value> outputs = edit.graph().outputs();
  const size_t first = outputs.size() - n - n_derived;
  for (size_t i = outputs.size(); i-- > 0;)
    TN_CHECK(services.edit->remove_output(edit.raw, i));
  Builder b(edit);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = place(derived, constants[i]);
    Value gradient = outputs[first + i];
    Value curved =
        at < n_derived ? outputs[first + n + at] : b.mul(gradient, b.number(0, gradient.dtype()));
    if (directions.empty())
      curved = b.sub(gradient, b.mul(curved, b.number(0.5, gradient.dtype())));
    TN_CHECK(b.status());
    TN_CHECK(edit.output(cat("curvature/", constants[i].name()), curved));
  }
  return edit.commit();
}

}  // namespace

Result<std::vector<Tensor>> BatchValues::means(tn_ctx* ctx,
                                               const std::vector<Value>& constants,
                                               const Cancel& cancel) {
  std::vector<std::vector<double>> sums;
  for (Value v : constants)
    sums.emplace_back(static_cast<size_t>(v.type().elements()));
  for (uint64_t batch = 0; batch < batches(); ++batch) {
    TN_CHECK(cancel.check());
    TN_CHECK(load(batch, cancel));
    for (size_t i = 0; i < constants.size(); ++i) {
      const float* data = of(constants[i])->data<float>();
      for (size_t at = 0; at < sums[i].size(); ++at)
        sums[i][at] += double{data[at]};
    }
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < constants.size(); ++i) {
    std::vector<float> mean;
    for (double sum : sums[i])
      mean.push_back(static_cast<float>(sum / static_cast<double>(batches())));
    TN_TRY(made, Tensor::of<float>(ctx, TN_F32, constants[i].type().dims, mean));
    out.push_back(std::move(made));
  }
  return Result<std::vector<Tensor>>(std::move(out));
}

Result<BatchValues> BatchValues::curvature(tn_ctx* ctx,
                                           const tn_graph* graph,
                                           const std::vector<Value>& constants,
                                           Direction direction,
                                           const BatchPlan& plan,
                                           const Cancel& cancel) {
  std::vector<Tensor> directions;
  if (direction == Direction::kMeanGradient) {
    TN_TRY(first, gradients(ctx, graph, constants, plan, cancel));
    TN_TRY(mean, first.means(ctx, constants, cancel));
    directions = std::move(mean);
  }
  BatchValues out;
  TN_TRY(lossy, with_loss(ctx, graph, plan, &out.feed_));
  OwnedGraph clone = std::move(lossy);
  out.rules_ = BatchRules::of(clone.view());
  TN_CHECK(differentiate(ctx, clone.get(), constants, cancel).in("gradients"));
  const std::vector<Value> derived = read_by(clone.view(), constants);
  TN_CHECK(derive_again(ctx, clone.get(), derived, cancel).in("second derivatives"));
  TN_CHECK(direct(clone.get(), constants, derived, directions));
  TN_CHECK(out.compile(ctx, clone.get(), constants));
  return Result<BatchValues>(std::move(out));
}

}  // namespace tenon::pruner

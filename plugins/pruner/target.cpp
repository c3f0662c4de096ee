// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <nlohmann/json.hpp>

#include "cost.hpp"

namespace tenon::pruner {
namespace {

constexpr int kRounds = 15;
constexpr const char* kWords[] = {"", "macs", "parameters", "time"};

// A model that runs on numbers of its own.
struct Runner {
  OwnedGraph graph;
  std::vector<Tensor> inputs;
  Plan plan;

  static Result<Runner> of(tn_ctx* ctx, const tn_graph* raw) {
    Runner out;
    out.graph = with_known_sizes(raw);
    if (!out.graph.get()) return unsupported("its sizes cannot all be 1 where they are open");
    for (Value input : out.graph.view().inputs()) {
      Type type = input.type();
      TN_TRY(zeros, Tensor::zeros(ctx, type.dtype, type.dims));
      if (type.dtype == TN_F32) {
        std::vector<double> draws(static_cast<size_t>(type.elements()));
        services.random->normal(0, out.inputs.size(), 0, draws.data(), draws.size());
        std::copy(draws.begin(), draws.end(), zeros.data<float>());
      }
      out.inputs.push_back(zeros);
    }
    TN_TRY(plan, Plan::on_first(ctx, out.graph.view(), {}, {}));
    out.plan = std::move(plan);
    return Result<Runner>(std::move(out));
  }
  Result<double> milliseconds(const Cancel& cancel) {
    std::vector<DLTensor> views;
    for (const Tensor& one : inputs)
      views.push_back(one.dl());
    auto start = std::chrono::steady_clock::now();
    TN_CHECK(plan.run(views, cancel.raw()));
    std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    return passed.count();
  }
};

Result<double> time_left(tn_ctx* ctx,
                         const tn_graph* before,
                         const tn_graph* after,
                         const Cancel& cancel) {
  TN_TRY(old_model, Runner::of(ctx, before));
  TN_TRY(new_model, Runner::of(ctx, after));
  double old_best = std::numeric_limits<double>::max(), new_best = old_best;
  // The first round takes memory; others compete at any time, so the fastest of rounds says most.
  for (int round = 0; round <= kRounds; ++round) {
    TN_TRY(old_ms, old_model.milliseconds(cancel));
    TN_TRY(new_ms, new_model.milliseconds(cancel));
    if (round == 0) continue;
    old_best = std::min(old_best, old_ms);
    new_best = std::min(new_best, new_ms);
  }
  return new_best / old_best;
}

}  // namespace

Result<Target> Target::parse(const std::string& text) {
  Target out;
  if (text.empty()) return out;
  auto given = nlohmann::json::parse(text, nullptr, false);
  bool is_one = given.is_object() && given.size() == 1 && given.begin()->is_number();
  for (int i = 1; is_one && i < 4; ++i)
    if (given.begin().key() == kWords[i]) out.kind = static_cast<Kind>(i);
  if (out.kind != Kind::kNone) out.share = given.begin()->get<double>();
  if (out.kind == Kind::kNone || !(out.share > 0) || !(out.share < 1))
    return invalid(cat("option target: expected one of macs, parameters, time with the share that ",
                       "may be left, such as {\"macs\": 0.5}, got ", text));
  return out;
}

std::string Target::text() const {
  return nlohmann::json{{kWords[static_cast<size_t>(kind)], share}}.dump();
}

Result<double> Target::left(tn_ctx* ctx,
                            const tn_graph* before,
                            const tn_graph* after,
                            const Cancel& cancel) const {
  if (kind == Kind::kTime) return time_left(ctx, before, after, cancel);
  Cost was = cost_of(before), is = cost_of(after);
  if (kind == Kind::kParameters)
    return static_cast<double>(is.parameters) /
           static_cast<double>(std::max<int64_t>(was.parameters, 1));
  if (!was.macs || !is.macs || !(*was.macs > 0))
    return unsupported(
        "option target: the multiply-adds of this model cannot be counted: with 1 for each size "
        "that its inputs leave open, not all others are known; give them fixed sizes, or ask for "
        "parameters, or for a ratio");
  return *is.macs / *was.macs;
}

}  // namespace tenon::pruner

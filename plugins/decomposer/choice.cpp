// SPDX-License-Identifier: Apache-2.0
#include "choice.hpp"

#include <cmath>
#include <cstdio>

namespace tenon::decomposer {
namespace {

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

Kernel random_like(const Kernel& weight, uint64_t seed) {
  Kernel out{weight.n_out, weight.n_in, weight.window, std::vector<double>(weight.numbers.size())};
  services.random->normal(seed, 0, 0, out.numbers.data(), out.numbers.size());
  return out;
}

// A random weight that the ranks express exactly says nothing about structure.
double ratio_of(const Verdict& verdict) {
  constexpr double kExact = 1e-6;
  if (verdict.factors.error <= kExact) return 0;
  return verdict.factors.error / std::max(verdict.random_error, kExact);
}

std::string refuse_error(const Choice& choice, const Verdict& verdict) {
  double error = verdict.factors.error, ratio = ratio_of(verdict);
  if (error > choice.max_error)
    return cat("error ", short_number(error), " is over max_error ",
               short_number(choice.max_error));
  if (ratio > choice.max_ratio)
    return cat("error ", short_number(error), " is ", short_number(ratio), " of a random weight's ",
               short_number(verdict.random_error), ", over max_ratio ",
               short_number(choice.max_ratio), ": no low-rank structure");
  return "";
}

std::string refuse_cost(const Choice& choice, const Verdict& verdict) {
  if (choice.allow_slower) return "";
  if (verdict.after.flops < verdict.before.flops) return "";
  return cat("would need ", short_number(verdict.after.flops), " FLOPs where the layer needs ",
             short_number(verdict.before.flops));
}

}  // namespace

Result<Choice> Choice::read(tn_ctx* ctx, const Options& options) {
  Choice out;
  out.selected = Selected::read(options);
  out.max_error = options.number("max_error", out.max_error);
  out.max_ratio = options.number("max_ratio", out.max_ratio);
  out.measure = options.flag("measure");
  out.allow_slower = options.flag("allow_slower");
  out.backends = options.texts("backend");
  out.seed = static_cast<uint64_t>(options.integer("seed"));
  out.is_dry = options.flag("dry_run");
  out.leaves_unsuited = options.text("unsuited") == "leave";
  out.budget = options.number("budget");
  out.time = options.number("time");
  if (out.time > 0 && !out.measure)
    return invalid("option time: expected with measure, got measure = false");
  TN_TRY(data, FeedOptions::read(ctx, options));
  out.inputs = std::move(data);
  return Result<Choice>(std::move(out));
}

Verdict judge(const Method& method, const Choice& choice, Node node, const Whitening* whitening) {
  Verdict verdict;
  verdict.node = node;
  verdict.why = choice.selected.why_left(node);
  if (!verdict.why.empty()) return verdict;
  Result<Layer> read = read_layer(node);
  Refusal refused = read.ok() ? method.refuse(*read) : Refusal{read.status().text()};
  if (refused) {
    verdict.is_misfit = true;
    verdict.suited = refused.suited;
    verdict.why = refused.suited.empty() ? refused.why : cat(refused.why, ": use ", refused.suited);
    return verdict;
  }
  verdict.layer = std::move(*read);
  Kernel random = random_like(verdict.layer.weight, choice.seed);
  if (whitening) {
    whitening->whiten(&verdict.layer.weight);
    whitening->whiten(&random);
  }
  verdict.factors = method.factor(verdict.layer);
  if (whitening) whitening->undo(&verdict.factors.steps[0]);
  verdict.random_error = method.random_error(random, verdict.layer, verdict.factors.ranks);
  verdict.before = cost_of(verdict.layer);
  verdict.after = cost_of(verdict.layer, verdict.factors.steps);
  verdict.is_factored = true;
  verdict.layer.weight.numbers = {};
  verdict.why = verdict.factors.why;
  if (verdict.why.empty()) verdict.why = refuse_error(choice, verdict);
  if (verdict.why.empty() && !choice.measure) verdict.why = refuse_cost(choice, verdict);
  if (!verdict.why.empty()) verdict.factors.steps = {};
  return verdict;
}

void judge_cost(const Choice& choice, Verdict* verdict) {
  if (verdict->why.empty()) verdict->why = refuse_cost(choice, *verdict);
}

void judge_times(const Choice& choice, Verdict* verdict) {
  const Times& times = verdict->times;
  if (choice.allow_slower || times.after_ms < times.before_ms) return;
  verdict->why = cat("measured ", short_number(times.after_ms), " ms where the layer takes ",
                     short_number(times.before_ms), " ms");
}

}  // namespace tenon::decomposer

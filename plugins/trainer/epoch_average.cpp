// SPDX-License-Identifier: Apache-2.0
#include "epoch_average.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "tenon/role/pass.h"

#include "tenon/sdk/role/pass.hpp"

#include "composed.hpp"

namespace tenon::trainer {
using nlohmann::json;

Result<EpochAverage> EpochAverage::from(std::string_view text, uint64_t epochs) {
  EpochAverage out;
  if (text.empty()) return out;
  out.text = text;
  out.begin = epochs * 3 / 4;
  const json given = json::parse(text, nullptr, false);
  if (!given.is_object()) return invalid(cat("option swa: expected an object, got ", text));
  for (const auto& [key, value] : given.items()) {
    if (key == "rate") {
      if (!value.is_number() || !(value.get<double>() >= 0))
        return invalid(
            cat("option swa: rate: expected a number of at least 0, got ", value.dump()));
      out.rate = value.get<double>();
      continue;
    }
    uint64_t* to = key == "begin"        ? &out.begin
                   : key == "every"      ? &out.every
                   : key == "anneal"     ? &out.anneal
                   : key == "statistics" ? &out.statistics
                                         : nullptr;
    if (!to)
      return invalid(
          cat("option swa: expected begin, every, rate, anneal, statistics, got '", key, "'"));
    const uint64_t least = key == "every" || key == "statistics";
    if (!value.is_number_unsigned() || value.get<uint64_t>() < least)
      return invalid(cat("option swa: ", key, ": expected a whole number of at least ", least,
                         ", got ", value.dump()));
    *to = value.get<uint64_t>();
  }
  if (out.begin >= epochs)
    return invalid(cat("option swa: begin: expected fewer than the ", epochs,
                       " epochs of the training, got ", out.begin));
  if (out.anneal > 0 && !out.rate)
    return invalid("option swa: anneal: expected rate, to which the learning rate goes, with it");
  return out;
}

double EpochAverage::rate_at(double scheduled, double frozen, double epochs) const {
  if (!rate || epochs < static_cast<double>(begin)) return scheduled;
  double gone = epochs - static_cast<double>(begin), all = static_cast<double>(anneal);
  if (gone >= all) return *rate;
  double left = (1 + std::cos(std::numbers::pi * gone / all)) / 2;
  return left * frozen + (1 - left) * *rate;
}

Result<Weights> averaged(tn_ctx* ctx, const Weights& mean, const Weights& now, uint64_t n) {
  Weights out;
  for (const auto& [name, tensor] : now) {
    TN_TRY(made, Tensor::copy_of(ctx, tensor.dl()));
    auto old = mean.find(name);
    if (n > 0 && old != mean.end()) {
      auto mix = [&]<class T>(const T*) {
        DLTensor to = made.dl(), before = old->second.dl();
        T* x = data_of<T>(to);
        const T* m = data_of<const T>(before);
        for (int64_t i = 0; i < element_count(to); ++i)
          x[i] = static_cast<T>(m[i] + (double{x[i]} - double{m[i]}) / static_cast<double>(n + 1));
      };
      if (dtype_of(made.dl()) == TN_F32) mix(static_cast<const float*>(nullptr));
      if (dtype_of(made.dl()) == TN_F64) mix(static_cast<const double*>(nullptr));
    }
    out[name] = std::move(made);
  }
  return out;
}

Status estimate_statistics(tn_ctx* ctx,
                           tn_graph* model,
                           const StatisticsData& from,
                           const Cancel& cancel) {
  std::vector<Node> nodes = Graph{model}.nodes();
  bool has_norms = std::ranges::any_of(nodes, [](Node n) { return n.is("BatchNormalization"); });
  if (!has_norms) return {};
  TN_TRY(part, composed(ctx, "tenon.dataset/1", "datasets.subset", "data", *from.data,
                        json{{"samples", from.samples}}.dump()));
  json how{{"samples", from.samples.size()}, {"batch", from.batch}};
  if (!from.backends.empty()) how["backend"] = from.backends;
  TN_TRY(pass, composed(ctx, "tenon.pass/1", "recovery.statistics", "data", part, how.dump()));
  StringSink report;
  return Status(pass.table<tn_pass>()->run(pass.self(), model, cancel.raw(), report.get()))
      .in("option swa: statistics of BatchNormalization");
}

}  // namespace tenon::trainer

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stochastic weight averaging (Izmailov et al. 2018, "Averaging weights leads to wider optima and
// better generalization"): the plain mean of the weights at the ends of epochs.

#include <optional>
#include <string>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/run.hpp"

#include "parameters.hpp"

namespace tenon::trainer {

// The option `swa`.
struct EpochAverage {
  std::string text;               // the option, a JSON object; empty: none
  uint64_t begin = 0, every = 1;  // epochs before the first weights that count; from one to another
  std::optional<double> rate;     // the learning rate from `begin` on
  uint64_t anneal = 0;            // epochs over which the schedule's rate becomes it, by a cosine
  uint64_t statistics = 0;        // samples for those of BatchNormalization; 0: all

  static Result<EpochAverage> from(std::string_view text, uint64_t epochs);
  // Weights that count at the end of this epoch, counted from 1.
  uint64_t count_at(uint64_t epoch) const {
    return text.empty() || epoch <= begin ? 0 : (epoch - begin - 1) / every + 1;
  }
  // What becomes of the schedule's rate, `frozen` where averaging began, at so many epochs.
  double rate_at(double scheduled, double frozen, double epochs) const;
};

// The mean of n weights becomes that of n + 1: mean + (now - mean) / (n + 1).
Result<Weights> averaged(tn_ctx* ctx, const Weights& mean, const Weights& now, uint64_t n);

// The statistics of BatchNormalization are those of a model with other weights; here they are
// estimated again, each as the mean over batches of this size of samples of the data set.
struct StatisticsData {
  const Component* data = nullptr;
  std::vector<uint64_t> samples;
  uint64_t batch = 0;
  std::vector<std::string> backends;
};
Status estimate_statistics(tn_ctx* ctx,
                           tn_graph* model,
                           const StatisticsData& from,
                           const Cancel& cancel);

}  // namespace tenon::trainer

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples of a data set as inputs of the model and targets of the loss, and the order they come in.

#include "tenon/sdk/feed.hpp"

#include "step_graph.hpp"

namespace tenon::trainer {

class Feed {
 public:
  // targets: fields of the data set; empty: the one that is no input of the model, or "label".
  // keeps_double: targets of float64 stay so, as they do for a model that reads it.
  // option: of the data set, for messages.
  static Result<Feed> make(tn_ctx* ctx,
                           const Component& data,
                           Graph model,
                           const std::vector<std::string>& targets,
                           bool keeps_double,
                           std::string_view option = "data");
  // The same with memory of its own: one for each thread.
  Feed another() const {
    Feed out;
    out.feed_ = feed_.another();
    out.inputs_ = inputs_;
    out.targets_ = targets_;
    return out;
  }
  uint64_t size() const { return feed_.samples(); }
  uint64_t batch() const { return feed_.batch(); }  // the model's own where it is fixed
  const std::vector<Field>& inputs() const { return inputs_; }
  const std::vector<Field>& targets() const { return targets_; }
  // What a loss says of its targets, for the check of labels.
  void set_targets(const std::vector<Field>& targets) { targets_ = targets; }

  // Inputs and targets of these samples, until the next call. seed: for data sets that change
  // samples at random.
  Result<tenon::Feed::Batch> load(std::span<const uint64_t> samples, uint64_t seed);

 private:
  tenon::Feed feed_;
  std::vector<Field> inputs_, targets_;
};

// 0..n in an order that only seed and stream decide.
std::vector<uint64_t> shuffled(uint64_t n, uint64_t seed, uint64_t stream);

}  // namespace tenon::trainer

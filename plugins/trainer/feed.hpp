// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples of a data set as inputs of the model and targets of the loss, and the order they come in.

#include <span>

#include "step_graph.hpp"

namespace tenon::trainer {

class Feed {
 public:
  // targets: fields of the data set; empty: the one that is no input of the model, or "label".
  static Result<Feed> make(tn_ctx* ctx,
                           const Component& data,
                           Graph model,
                           const std::vector<std::string>& targets);
  uint64_t size() const { return size_; }
  const std::vector<Field>& inputs() const { return inputs_; }
  const std::vector<Field>& targets() const { return targets_; }
  // What a loss says of its targets, for the check of labels.
  void set_targets(const std::vector<Field>& targets) { targets_ = targets; }

  // Inputs, then targets, of these samples. seed: for data sets that change samples at random.
  Result<std::vector<Tensor>> load(std::span<const uint64_t> samples, uint64_t seed) const;

 private:
  Status match(Graph model, const std::vector<std::string>& targets);
  Result<Tensor> converted(const Field& field, const Tensor& given) const;
  Status check_labels(const Field& field,
                      const Tensor& labels,
                      std::span<const uint64_t> samples) const;

  tn_ctx* ctx_ = nullptr;
  const Component* data_ = nullptr;
  uint64_t size_ = 0;
  size_t n_fields_ = 0;
  std::vector<Field> inputs_, targets_;
};

// 0..n in an order that only seed and stream decide.
std::vector<uint64_t> shuffled(uint64_t n, uint64_t seed, uint64_t stream);

}  // namespace tenon::trainer

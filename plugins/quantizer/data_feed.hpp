// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches of a data set as the inputs of a model, matched by name.

#include <memory>
#include <string>
#include <vector>

#include "tenon/role/dataset.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"

#include "buffers.hpp"

namespace tenon::quantizer {

class DataFeed {
 public:
  // Checks names and types now, so that a wrong data set costs no compilation.
  // data: outlives the feed.
  static Result<DataFeed> make(
      tn_ctx* ctx, const Component& data, Graph graph, uint64_t samples, uint64_t batch);

  uint64_t samples() const { return samples_; }
  uint64_t batches() const { return (samples_ + batch_ - 1) / batch_; }
  std::string batch_text(uint64_t b) const;  // "batch 2 (samples 16 to 23)"
  // The inputs in the model's order; they live until the next call.
  Result<std::vector<const DLTensor*>> load(uint64_t b);

 private:
  struct Input {
    std::string name;
    Type type;
    size_t field = 0;
  };
  Status match(Graph graph);
  uint64_t first(uint64_t b) const { return b * batch_; }
  uint64_t last(uint64_t b) const { return std::min(samples_, (b + 1) * batch_); }
  const tn_dataset* table() const { return data_->table<tn_dataset>(); }

  const Component* data_ = nullptr;
  std::vector<Input> inputs_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<DLTensor> views_;
  uint64_t samples_ = 0, batch_ = 1;
};

}  // namespace tenon::quantizer

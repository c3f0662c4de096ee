// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which values of a graph have padding in them, for graphs that are extended to look at these.

#include <map>
#include <span>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/padding.hpp"

namespace tenon::quantizer {

// The graph with the sizes of a batch in all of its types.
Result<OwnedGraph> sized(Graph graph, std::span<const DLTensor> inputs);

class Padded {
 public:
  Padded() = default;
  // The mask of that name, looked up among `values` with the sizes of the first batch. An error
  // where it covers none of them.
  static Result<Padded> find(Graph graph,
                             const std::string& mask,
                             std::span<const Value> values,
                             Feed* feed);
  // Of the batch that is run next.
  Status read(std::span<const DLTensor> inputs) { return mask_.read(inputs); }
  bool has(Value value) const { return leading_.contains(value.id); }
  // What stands for `value` with zeros for padding: x, which has its shape, or x itself.
  Result<Value> cleared(EditView edit, Value value, Value x) const {
    auto found = leading_.find(value.id);
    return found == leading_.end() ? Result<Value>(x) : mask_.cleared(edit, x, found->second);
  }
  // At the end: an error where all was padding.
  Status check() const { return mask_.check_counts(); }
  // How many of so many positions of it count.
  int64_t counted(int64_t positions) const { return mask_.counted(positions); }

 private:
  PaddingMask mask_;
  std::map<tn_value_id, size_t> leading_;  // the mask's axes in them
};

}  // namespace tenon::quantizer

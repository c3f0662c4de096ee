// SPDX-License-Identifier: Apache-2.0
#pragma once
// Observers of one making, one for each of a list of values.

#include <string>
#include <vector>

#include "tenon/role/observer.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

struct ObserverPlan {
  std::string observer;  // id, or the last word of one of ours
  std::string options;   // JSON object, or empty
  bool symmetric = false;
};

class Watch {
 public:
  static Result<Watch> make(tn_ctx* ctx, const ObserverPlan& plan, size_t count);

  // The id; empty where there is nothing to watch.
  std::string id() const { return observers_.empty() ? "" : observers_[0].id(); }
  // One of them, from any thread.
  Status observe(size_t i, const DLTensor& tensor) {
    return Status(observers_[i].table<tn_observer>()->observe(observers_[i].self(), &tensor));
  }
  // Whether what those have saved says all that these need: of one family, which knows its own
  // states. Both have seen nothing.
  bool can_take(const Watch& other) const;
  // Adds what those have seen to what these have, on all threads.
  Status take(tn_ctx* ctx, const Watch& other);
  // Of each value, on all threads; the first failure in the values' order.
  Result<std::vector<tn_range>> ranges(tn_ctx* ctx, const std::vector<Value>& values) const;

 private:
  std::vector<Component> observers_;
};

}  // namespace tenon::quantizer

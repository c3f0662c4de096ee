// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of a model may be left, in whatever counts, and how much of it is.

#include <string>

#include "tenon/sdk/plan.hpp"

namespace tenon::pruner {

class Target {
 public:
  enum class Kind { kNone, kMacs, kParameters, kTime };
  // {"macs": 0.5}, {"parameters": 0.5} or {"time": 0.5}; empty text: none.
  static Result<Target> parse(const std::string& text);
  explicit operator bool() const { return kind != Kind::kNone; }
  std::string text() const;

  // The share of the first model that the second one has. Times are measured, the fastest of runs
  // in turns, with sizes that the model leaves open as 1.
  Result<double> left(tn_ctx* ctx,
                      const tn_graph* before,
                      const tn_graph* after,
                      const Cancel& cancel) const;

  Kind kind = Kind::kNone;
  double share = 1;
};

}  // namespace tenon::pruner

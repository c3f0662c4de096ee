// SPDX-License-Identifier: Apache-2.0
#pragma once
// What losses of several vectors a sample share: outputs of the model, [n, d] each, and no target.

#include "objective.hpp"

namespace tenon::trainer {

// The first `count` outputs, in float32. A target is refused: what belongs together is said by the
// outputs' order.
inline Result<std::vector<Value>> vectors(Builder& b,
                                          const Objective& objective,
                                          size_t count,
                                          std::string_view words) {
  if (objective.predictions.size() < count)
    return invalid(cat("prediction: expected a model with ", count, " outputs (", words, "), got ",
                       objective.predictions.size()));
  if (!objective.targets.empty())
    return invalid(cat("target ", objective.targets[0].name(),
                       ": expected none: the outputs are compared with one another"));
  const Type first = objective.predictions[0].type();
  std::vector<Value> out;
  for (size_t i = 0; i < count; ++i) {
    Value one = objective.predictions[i];
    Type type = one.type();
    if (!type.ranked || type.rank() != 2 || !is_float(type.dtype) || !fits(type, first))
      return invalid(cat("prediction ", one.name(), ": expected vectors [n, d] of floats, as ",
                         objective.predictions[0].name(), " has, got ", type_text(type)));
    out.push_back(b.cast(one, TN_F32));
  }
  return out;
}

}  // namespace tenon::trainer

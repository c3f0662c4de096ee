// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of an update in each element type that parameters have, made once for all of them.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/setting.hpp"

namespace tenon::trainer {

class Coefficients {
 public:
  explicit Coefficients(Builder& builder) : builder_(&builder) {}
  Value number(double value, uint32_t dtype) {
    Value& made = numbers_[{value, dtype}];
    if (!made) made = builder_->number(value, dtype);
    return made;
  }
  // A number that a schedule may drive, by the name of its option: one for all who ask.
  Value setting(std::string_view name, double value, uint32_t dtype) {
    Value& made = settings_[{std::string(name), dtype == TN_F64}];
    if (!made) made = tenon::setting(*builder_, name, value, dtype == TN_F64 ? TN_F64 : TN_F32);
    return as(made, dtype);
  }
  // A scalar of the graph in this type.
  Value as(Value scalar, uint32_t dtype) {
    Value& made = casts_[{scalar.id, dtype}];
    if (!made) made = builder_->cast(scalar, dtype);
    return made;
  }

 private:
  Builder* builder_;
  std::map<std::pair<double, uint32_t>, Value> numbers_;
  std::map<std::pair<std::string, bool>, Value> settings_;
  std::map<std::pair<tn_value_id, uint32_t>, Value> casts_;
};

// Weight decay, and which parameters are left without.
struct Decay {
  double amount = 0;
  bool vectors = true;            // biases, scales of normalizations
  std::vector<std::string> none;  // patterns of names
  static Decay from(const Options& options) {
    return {options.number("weight_decay"), options.flag("decay_vectors"),
            options.texts("no_decay")};
  }
  // A pattern that means nothing in the graph is a slip of the pen. Parameters of other groups, and
  // what is frozen, are in the graph too.
  Status check(Graph graph) const {
    std::vector<Value> known = graph.inputs(), constants = graph.constants();
    known.insert(known.end(), constants.begin(), constants.end());
    for (const std::string& pattern : none)
      if (std::none_of(known.begin(), known.end(),
                       [&](Value v) { return matches(pattern, v.name()); }))
        return invalid(cat("option no_decay: no parameter fits '", pattern, "'"));
    return {};
  }
  bool applies_to(const Parameter& parameter) const {
    return amount != 0 && (vectors || parameter.value.type().rank() > 1) &&
           matched_by(none, parameter.name).empty();
  }
  Value number(Coefficients& constants, uint32_t dtype) const {
    return constants.setting("weight_decay", amount, dtype);
  }
  // The gradient with the decay inside (an L2 penalty).
  Value added_to(Builder& b, Coefficients& constants, const Parameter& one) const {
    if (!applies_to(one)) return one.gradient;
    return b.add(one.gradient, b.mul(one.value, number(constants, one.value.dtype())));
  }
};
// Each raw text stays on its line: a line that goes on would become part of it.
// clang-format off
#define TRAINER_DECAY_OPTIONS(amount) \
  R"("weight_decay": {"type": "number", "minimum": 0, "default": )" amount \
  R"(, "description": "weight decay"}, )" \
  R"("decay_vectors": {"type": "boolean", "default": true, )" \
  R"("description": "weight decay of biases and scales of normalizations as well"}, )" \
  R"("no_decay": {"type": ["array", "string"], "items": {"type": "string"}, )" \
  R"("description": "patterns of names of parameters without weight decay"})"
// clang-format on

}  // namespace tenon::trainer
